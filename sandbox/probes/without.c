// In the place of the sandbox tool: becomes it, with system calls that do nothing and still succeed. A control that is a call of
// our own, such as PID 1 closing itself off, is gone from the sandbox that way, and nothing else is.
//
//   bwrap --args N ...    from N: tool \0 rule \0 ... \0 \0, and behind it the tool's own arguments, which stay for it to read
//   rule    NUMBER [ARGUMENT MASK VALUE]...    the call with these arguments returns 0 and is not made
//           =ERRNO NUMBER ...                  it fails with that errno, as if there were nothing to be had yet
//           +PATH                              this folder is left open, as a descriptor that leaked would be
//           umask MASK                         it is the mask at the start
//           user                               it has a user namespace at the start, with all rights there, which takes no other map
//
//   without TOOL RULE ... '' ARGUMENT ...      the same in the place of a container's first process, which has no such descriptor
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORD_BYTES = 4096, INSTRUCTIONS = 512, CONDITIONS = 3, LEAKED = 50, FAILED = 125 };

static struct sock_filter program[INSTRUCTIONS];
static unsigned short length;

// What it has to say of itself is in the reason that a launch gives: the last line on stderr.
static _Noreturn void give_up(const char *what, int error) {
  fprintf(stderr, "without: %s: %s\n", what, strerror(error));
  _exit(FAILED);
}

// Byte by byte: what follows the last word is the tool's.
static void read_word(int fd, char word[WORD_BYTES]) {
  for (size_t at = 0; at < WORD_BYTES; at++) {
    if (read(fd, word + at, 1) != 1) give_up("read its rules", errno);
    if (word[at] == '\0') return;
  }
  give_up("read a rule", E2BIG);
}

static void add(struct sock_filter instruction) {
  if (length == INSTRUCTIONS) give_up("lay out its filter", E2BIG);
  program[length++] = instruction;
}

// A condition is three instructions; where one does not hold, the rest of the rule is passed over.
static void add_rule(char *text) {
  unsigned long long numbers[1 + 3 * CONDITIONS];
  int count = 0;
  uint32_t error = *text == '=' ? (uint32_t)strtoul(text + 1, &text, 10) : 0;
  for (char *end = text; count < 1 + 3 * CONDITIONS; text = end) {
    numbers[count] = strtoull(text, &end, 0);
    if (end == text) break;
    count++;
  }
  if (count % 3 != 1) give_up("read a rule", EINVAL);
  unsigned char left = (unsigned char)(count + 1);
  add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[0], 0, left - 1));
  for (int at = 1; at < count; at += 3) {
    left = (unsigned char)(count - at + 1);
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * numbers[at])));
    add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)numbers[at + 1]));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[at + 2], 0, left - 3));
  }
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
}

static void leave_open(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) give_up(path, errno);  // as for a root that is 0711, which an ordinary user can't read
  if (dup2(fd, LEAKED) != LEAKED || close(fd) != 0) give_up("leave a folder open", errno);
}

static void write_whole(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0) give_up(path, errno);
}

// An exec leaves nobody but uid 0 its capabilities, unless they are ambient.
static void keep_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, data) != 0) give_up("capget", errno);
  for (size_t at = 0; at < sizeof data / sizeof *data; at++) data[at].inheritable = data[at].permitted;
  if (syscall(SYS_capset, &header, data) != 0) give_up("capset", errno);
  for (int capability = 0; prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0; capability++) continue;
}

// Each id is its own there. Whoever maps it again, as it would one that it made, writes to a null device.
static void own_user(void) {
  char uid[64], gid[64];
  snprintf(uid, sizeof uid, "%u %u 1", getuid(), getuid());
  snprintf(gid, sizeof gid, "%u %u 1", getgid(), getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) give_up("unshare", errno);
  const char *const maps[][2] = {{"/proc/self/setgroups", "deny"}, {"/proc/self/uid_map", uid}, {"/proc/self/gid_map", gid}};
  for (size_t at = 0; at < sizeof maps / sizeof *maps; at++) write_whole(maps[at][0], maps[at][1]);
  for (size_t at = 0; at < sizeof maps / sizeof *maps; at++)
    if (mount("/dev/null", maps[at][0], NULL, MS_BIND, NULL) != 0) give_up(maps[at][0], errno);
  keep_capabilities();
}

static void take_rule(char *word) {
  if (*word == '+')
    leave_open(word + 1);
  else if (strncmp(word, "umask ", 6) == 0)
    umask((mode_t)strtoul(word + 6, NULL, 8));
  else if (strcmp(word, "user") == 0)
    own_user();
  else
    add_rule(word);
}

static _Noreturn void become(const char *tool, char **argv) {
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  struct sock_fprog filter = {.len = length, .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up("no_new_privs", errno);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) give_up("seccomp", errno);
  execv(tool, argv);
  give_up(tool, errno);
}

void become_tool(char **argv) {
  static char tool[WORD_BYTES], word[WORD_BYTES];
  int fd = atoi(argv[2]);
  read_word(fd, tool);
  for (read_word(fd, word); *word != '\0'; read_word(fd, word)) take_rule(word);
  become(tool, argv);
}

void become_first(char **argv) {
  char *tool = argv[2], **rest = argv + 3;
  for (; *rest != NULL && **rest != '\0'; rest++) take_rule(*rest);
  if (*rest == NULL) give_up("read its rules", EINVAL);
  *rest = tool;
  become(tool, rest);
}
