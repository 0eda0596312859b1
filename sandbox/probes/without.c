// In the place of the sandbox tool: becomes it, with system calls that do nothing and still succeed. A control that is a call of
// our own, such as PID 1 closing itself off, is gone from the sandbox that way, and nothing else is.
//
//   bwrap --args N ...    from N: tool \0 rule \0 ... \0 \0, and behind it the tool's own arguments, which stay for it to read
//   rule    NUMBER [ARGUMENT MASK VALUE]...    the call with these arguments returns 0 and is not made
//           +PATH                              this folder is left open, as a descriptor that leaked would be
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WORD_BYTES = 4096, INSTRUCTIONS = 512, CONDITIONS = 3, LEAKED = 50, FAILED = 125 };

static struct sock_filter program[INSTRUCTIONS];
static unsigned short length;

// Byte by byte: what follows the last word is the tool's.
static void read_word(int fd, char word[WORD_BYTES]) {
  for (size_t at = 0; at < WORD_BYTES; at++) {
    if (read(fd, word + at, 1) != 1) _exit(FAILED);
    if (word[at] == '\0') return;
  }
  _exit(FAILED);
}

static void add(struct sock_filter instruction) {
  if (length == INSTRUCTIONS) _exit(FAILED);
  program[length++] = instruction;
}

// A condition is three instructions; where one does not hold, the rest of the rule is passed over.
static void add_rule(char *text) {
  unsigned long long numbers[1 + 3 * CONDITIONS];
  int count = 0;
  for (char *end = text; count < 1 + 3 * CONDITIONS; text = end) {
    numbers[count] = strtoull(text, &end, 0);
    if (end == text) break;
    count++;
  }
  if (count % 3 != 1) _exit(FAILED);
  unsigned char left = (unsigned char)(count + 1);
  add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[0], 0, left - 1));
  for (int at = 1; at < count; at += 3) {
    left = (unsigned char)(count - at + 1);
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * numbers[at])));
    add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)numbers[at + 1]));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[at + 2], 0, left - 3));
  }
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO));
}

static void leave_open(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || dup2(fd, LEAKED) != LEAKED || close(fd) != 0) _exit(FAILED);
}

void become_tool(char **argv) {
  static char tool[WORD_BYTES], word[WORD_BYTES];
  int fd = atoi(argv[2]);
  read_word(fd, tool);
  for (read_word(fd, word); *word != '\0'; read_word(fd, word))
    if (*word == '+')
      leave_open(word + 1);
    else
      add_rule(word);
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  struct sock_fprog filter = {.len = length, .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(FAILED);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(FAILED);
  execv(tool, argv);
  perror(tool);
  _exit(FAILED);
}
