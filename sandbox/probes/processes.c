// Attempts on processes, and what a process has: descriptors, variables, keys, ids.
#include "probes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static char descriptors[4096];

void note_descriptors(void) {
  size_t length = 0;
  for (int fd = 0; fd < 1024; fd++) {
    struct stat status;
    if (fstat(fd, &status) != 0) continue;
    const char *kind = S_ISDIR(status.st_mode)    ? "folder"
                       : S_ISSOCK(status.st_mode) ? "socket"
                       : S_ISFIFO(status.st_mode) ? "pipe"
                       : isatty(fd)               ? "terminal"
                       : S_ISCHR(status.st_mode)  ? "device"
                                                  : "file";
    int wrote = snprintf(descriptors + length, sizeof descriptors - length, "%d %s\n", fd, kind);
    if (wrote > 0 && length + (size_t)wrote < sizeof descriptors) length += (size_t)wrote;
  }
}

static int list_descriptors(int count, char **arguments) {
  (void)count, (void)arguments;
  fputs(descriptors, found);
  return 0;
}

// Each ends with a NUL: nothing else is in no value.
static int environment(int count, char **arguments) {
  (void)count, (void)arguments;
  for (char **variable = environ; *variable != NULL; variable++) fprintf(found, "%s%c", *variable, '\0');
  return 0;
}

// One line for each process that is seen: its number and its name.
static int processes(int count, char **arguments) {
  (void)count, (void)arguments;
  DIR *folder = opendir("/proc");
  if (folder == NULL) return -1;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char path[300], name[32] = "?";
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
    FILE *file = fopen(path, "r");
    if (file != NULL && fgets(name, sizeof name, file) != NULL) name[strcspn(name, "\n")] = '\0';
    if (file != NULL) fclose(file);
    fprintf(found, "%s %s\n", entry->d_name, name);
  }
  return 0;
}

// Signal 0 asks and does nothing. Our own numbers say nothing of anybody else's.
static int signal_it(int count, char **arguments) {
  (void)count;
  pid_t pid = (pid_t)atoi(arguments[0]);
  if (pid == getpid() || pid == getppid()) return errno = ESRCH, -1;
  return kill(pid, 0);
}

// A process of PID 1's namespace cannot kill it, whatever their uids: it is there afterwards, and so are we.
static int kill_init(int count, char **arguments) {
  (void)count, (void)arguments;
  // Only where PID 1 is a sandbox's: a machine's own is nobody to try this on.
  if (access("/sallyport/init", F_OK) != 0) return errno = ENOTSUP, -1;
  kill(1, SIGKILL);
  kill(1, SIGTERM);
  return kill(1, 0) == 0 ? (errno = EBUSY, -1) : 0;
}

// What is the same outside: one's own child is killed.
static int kill_child(int count, char **arguments) {
  (void)count, (void)arguments;
  pid_t pid = fork();
  if (pid == 0)
    for (;;) pause();
  int status = 0;
  return kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? 0 : -1;
}

static int session(int count, char **arguments) {
  (void)count, (void)arguments;
  fprintf(found, "%d", getsid(0));
  return 0;
}

static int become_root(int count, char **arguments) {
  (void)count, (void)arguments;
  return setuid(0);
}

static int write_oom_score(int count, char **arguments) {
  (void)count;
  int fd = open("/proc/self/oom_score_adj", O_WRONLY);
  size_t length = strlen(arguments[0]);
  return fd < 0 || write(fd, arguments[0], length) != (ssize_t)length ? -1 : 0;
}

// limit NUMBER: both numbers, as /proc/self/limits has them.
static int limit_of(int count, char **arguments) {
  (void)count;
  struct rlimit limit;
  if (getrlimit((__rlimit_resource_t)atoi(arguments[0]), &limit) != 0) return -1;
  fprintf(found, "%llu %llu", (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
  return 0;
}

// raise-limit NUMBER DELTA: the hard limit by that much, which nobody may raise and everybody may lower.
static int move_limit(int count, char **arguments) {
  (void)count;
  struct rlimit limit;
  int resource = atoi(arguments[0]);
  if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) return -1;
  limit.rlim_max += (rlim_t)atoll(arguments[1]);
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  return setrlimit((__rlimit_resource_t)resource, &limit);
}

static int join_keyring(int count, char **arguments) {
  (void)count, (void)arguments;
  return (int)syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", arguments[0], 0) < 0 ? -1 : 0;
}

// The same where a key was planted in the session keyring before.
static int search_planted(int count, char **arguments) {
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0) return -1;
  if (syscall(SYS_add_key, "user", arguments[0], "x", 1, KEY_SPEC_SESSION_KEYRING) < 0) return -1;
  return join_keyring(count, arguments);
}

// One's own child is asked to end and does not: it is there afterwards.
static int refuse_to_end(int count, char **arguments) {
  (void)count, (void)arguments;
  signal(SIGTERM, SIG_IGN);
  pid_t pid = fork();
  if (pid == 0)
    for (;;) pause();
  kill(pid, SIGTERM);
  struct timespec moment = {.tv_nsec = 100000000};
  nanosleep(&moment, NULL);
  int is_there = waitpid(pid, NULL, WNOHANG) == 0;
  kill(pid, SIGKILL);
  return is_there ? 0 : (errno = ESRCH, -1);
}

// Tells this program to go on for ever, whatever it is asked.
static int stay(int count, char **arguments) {
  (void)count, (void)arguments;
  return kill(getppid(), SIGUSR1);
}

// Has this program close its stderr, of which nobody should hold another end.
static int let_go(int count, char **arguments) {
  (void)count, (void)arguments;
  return kill(getppid(), SIGUSR2);
}

// Starts a program and tells ids and capabilities with which it ended: what its file gave it stays with it to its end.
static int exec_gain(int count, char **arguments) {
  char path[64], line[256];
  int ends[2], error = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    execv(arguments[0], (char *[]){arguments[0], count > 1 ? arguments[1] : NULL, NULL});
    error = errno;
    _exit(write(ends[1], &error, sizeof error) == sizeof error ? 0 : 1);
  }
  close(ends[1]);
  if (pid < 0) return -1;
  siginfo_t ended;
  while (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  if (read(ends[0], &error, sizeof error) == sizeof error) return errno = error, -1;
  snprintf(path, sizeof path, "/proc/%d/status", pid);
  FILE *status = fopen(path, "r");
  if (status == NULL) return -1;
  while (fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "Uid:", 4) == 0 || strncmp(line, "Gid:", 4) == 0 || strncmp(line, "Cap", 3) == 0) fputs(line, found);
  waitpid(pid, NULL, 0);
  return 0;
}

// A capability that this program never uses, for a file that whoever starts it would have it from. Takes root.
static int give_capability(int count, char **arguments) {
  (void)count;
  struct vfs_ns_cap_data data = {.magic_etc = VFS_CAP_REVISION_2};
  data.data[0].permitted = 1u << CAP_NET_BIND_SERVICE;
  return setxattr(arguments[0], "security.capability", &data, XATTR_CAPS_SZ_2, 0);
}

static int secure_bits(int count, char **arguments) {
  (void)count, (void)arguments;
  int bits = prctl(PR_GET_SECUREBITS);
  fprintf(found, "%d", bits);
  return bits;
}

const struct attempt process_attempts[] = {
    {"stay", 0, stay},                    {"refuse-to-end", 0, refuse_to_end},
    {"let-go", 0, let_go},
    {"exec-gain", 1, exec_gain},          {"give-capability", 1, give_capability}, {"secure-bits", 0, secure_bits},
    {"descriptors", 0, list_descriptors}, {"environment", 0, environment},   {"processes", 0, processes},
    {"signal", 1, signal_it},             {"kill-init", 0, kill_init},       {"kill-child", 0, kill_child},
    {"session", 0, session},              {"become-root", 0, become_root},   {"oom-score", 1, write_oom_score},
    {"move-limit", 2, move_limit},        {"limit", 1, limit_of},
        {"search-key", 1, join_keyring},   {"search-planted-key", 1, search_planted},
    {NULL, 0, NULL},
};
