// In the place of the launcher: becomes it, after a start as bad as a daemon could ever give it. What the launcher is for is to
// leave all that behind: whether it did is seen afterwards.
//
//   #!THIS --before       first line of a script that is started as the launcher
//   LAUNCHER              which is started in the end, with the arguments of the script
//   WORD                  value of a variable, and name of a key, that must go no further
//   NUMBER [INDEX VALUE]  this system call, with this argument, returns 0 and is not made; any number of lines
//
// What is amiss with the start that it was itself given is in SCRIPT.found, a word a line.
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, INSTRUCTIONS = 64, LEAKED = 60, FAILED = 125 };

extern char **environ;

static struct sock_filter program[INSTRUCTIONS];
static unsigned short length;

static void add(struct sock_filter instruction) {
  if (length == INSTRUCTIONS) _exit(FAILED);
  program[length++] = instruction;
}

static void leave_out(const char *line) {
  unsigned number, index, value;
  int count = sscanf(line, "%u %u %u", &number, &index, &value);
  if (count != 1 && count != 3) _exit(FAILED);
  add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, count == 3 ? 3 : 1));
  if (count == 3) {
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * index)));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
  }
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO));
}

static bool is_null(int fd) {
  struct stat stream, null;
  return fstat(fd, &stream) == 0 && stat("/dev/null", &null) == 0 && stream.st_rdev == null.st_rdev && S_ISCHR(stream.st_mode);
}

static void tell_own_start(const char *script) {
  char path[PATH_BYTES], folder[PATH_BYTES] = "";
  int wrote = snprintf(path, sizeof path, "%s.found", script);
  if (wrote < 0 || (size_t)wrote >= sizeof path) _exit(FAILED);
  FILE *told = fopen(path, "we");
  if (told == NULL) _exit(FAILED);
  if (*environ != NULL) fprintf(told, "variables\n");
  if (getcwd(folder, sizeof folder) == NULL || strcmp(folder, "/") != 0) fprintf(told, "folder\n");
  if (getsid(0) != getpid()) fprintf(told, "session\n");
  for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++)
    if (!is_null(fd)) fprintf(told, "stream %d\n", fd);
  if (fclose(told) != 0) _exit(FAILED);
}

// What is mounted from here on shows in every namespace that has these mounts as well, as where a machine's are shared: in a
// namespace of our own, so that it never shows on the machine. Takes root, as staging does.
static void share_mounts(void) {
  if (geteuid() != 0) return;
  if (unshare(CLONE_NEWNS) != 0) _exit(FAILED);
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) != 0)
    _exit(FAILED);
}

// A group that whoever started a daemon may be in, as root usually is in some.
static void join_group(void) {
  static const gid_t group = 1;
  if (geteuid() == 0 && setgroups(1, &group) != 0) _exit(FAILED);
}

static void spoil_start(const char *script, const char *word) {
  char folder[PATH_BYTES];
  strncpy(folder, script, sizeof folder - 1);
  folder[sizeof folder - 1] = '\0';
  int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY);
  if (fd < 0 || dup2(fd, LEAKED) != LEAKED || close(fd) != 0 || fchdir(LEAKED) != 0) _exit(FAILED);
  if (setenv("SALLYPORT_VERIFY_BEFORE", word, 1) != 0) _exit(FAILED);
  share_mounts();
  join_group();
  umask(0);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  if (signal(SIGHUP, SIG_IGN) == SIG_ERR || sigprocmask(SIG_BLOCK, &blocked, NULL) != 0) _exit(FAILED);
  // Where the kernel has no keys, or lets nobody here have any, there is none to be passed on.
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
    (void)syscall(SYS_add_key, "user", word, "x", 1, KEY_SPEC_SESSION_KEYRING);
}

static void read_line(FILE *lines, char line[PATH_BYTES]) {
  if (fgets(line, PATH_BYTES, lines) == NULL) _exit(FAILED);
  line[strcspn(line, "\n")] = '\0';
}

void become_launcher(char **argv) {
  static char launcher[PATH_BYTES], word[PATH_BYTES], line[PATH_BYTES];
  const char *script = argv[2];
  tell_own_start(script);
  FILE *lines = fopen(script, "re");
  if (lines == NULL) _exit(FAILED);
  read_line(lines, line);
  read_line(lines, launcher);
  read_line(lines, word);
  while (fgets(line, sizeof line, lines) != NULL) leave_out(line);
  fclose(lines);
  spoil_start(script, word);
  if (length > 0) {
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog filter = {.len = length, .filter = program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(FAILED);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(FAILED);
  }
  argv[2] = "sallyport-init";
  execv(launcher, argv + 2);
  perror(launcher);
  _exit(FAILED);
}
