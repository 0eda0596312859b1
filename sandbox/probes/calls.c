// Attempts on system calls. `reach` says whether a call gets past every filter, without ever letting the kernel do it.
#include "probes.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// No call of those that are tried answers with it: it stands for "was let through".
enum { REACHED = ENOTUNIQ };

static long install(uint32_t number, uint32_t action, unsigned flags) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {.len = sizeof program / sizeof *program, .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
}

static long make_call(char **arguments, int count) {
  long values[7] = {0};
  for (int index = 0; index < count && index < 7; index++) values[index] = (long)strtoull(arguments[index], NULL, 0);
  return syscall(values[0], values[1], values[2], values[3], values[4], values[5], values[6]);
}

// The caller's descriptors are the child's: it is enough to say the listener's number.
static void call_it(int told, char **arguments, int count) {
  long listener = install((uint32_t)strtoull(arguments[0], NULL, 0), SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  int number = listener < 0 ? -errno : (int)listener;
  if (write(told, &number, sizeof number) != sizeof number || listener < 0) _exit(NO_EFFECT);
  _exit(make_call(arguments, count) >= 0 ? 0 : errno);
}

static int code_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) kill(getpid(), SIGKILL);
  return WEXITSTATUS(status);
}

/*
 * The same where somebody listens already, since a process has one listener. A filter of our own then hands the call to a tracer
 * that is not there: it is not made, and the errno is ENOSYS, unless an older filter refuses. Where a refusal could be ENOSYS
 * too, the call is made, without a filter of ours. Only a sandbox has such a listener, and nobody in it has any right.
 */
static int reach_unheard(int count, char **arguments) {
  pid_t pid = fork();
  if (pid == 0) {
    if (install((uint32_t)strtoull(arguments[0], NULL, 0), SECCOMP_RET_TRACE, 0) < 0) _exit(NO_EFFECT);
    _exit(make_call(arguments, count) >= 0 ? 0 : errno);
  }
  int code = pid < 0 ? NO_EFFECT : code_of(pid);
  if (code != ENOSYS) return errno = code == NO_EFFECT ? 0 : code, code == 0 ? 0 : -1;
  pid = fork();
  if (pid == 0) _exit(make_call(arguments, count) >= 0 ? 0 : errno);
  code = pid < 0 ? NO_EFFECT : code_of(pid);
  return code != ENOSYS && code != NO_EFFECT ? 0 : (errno = code == NO_EFFECT ? 0 : code, -1);
}

static void let_nothing_happen(int listener) {
  struct seccomp_notif asked;
  memset(&asked, 0, sizeof asked);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
  struct seccomp_notif_resp reply = {.id = asked.id, .error = -REACHED};
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

static void wake_up(int signal) { (void)signal; }

/*
 * Waits until the child asks or has ended, and says whether it asks. Before Linux 6.11 a filter lives until whoever it filtered is
 * reaped, and the listener says nothing of an end: SIGCHLD does.
 */
static int asks(int listener, pid_t child, const sigset_t *open) {
  struct pollfd wait = {.fd = listener, .events = POLLIN};
  siginfo_t end = {.si_pid = 0};
  while (waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == 0) {
    if (ppoll(&wait, 1, NULL, open) > 0) break;
  }
  return (wait.revents & POLLIN) != 0;
}

/*
 * reach NUMBER ARGUMENT...: a filter of our own, added last, asks us about this very call. The kernel takes the strictest
 * answer of all filters, and a refusal is stricter than a question: where an older filter refuses, nobody asks. Where none
 * does, we answer with an error of our own, and the call is never made. So it is harmless for any call, as any user.
 */
static int reach(int count, char **arguments) {
  int ends[2], listener = -1;
  sigset_t ending, open;
  sigemptyset(&ending);
  sigaddset(&ending, SIGCHLD);
  signal(SIGCHLD, wake_up);
  if (pipe(ends) != 0 || sigprocmask(SIG_BLOCK, &ending, &open) != 0) return -1;
  sigdelset(&open, SIGCHLD);
  long child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) call_it(ends[1], arguments, count);
  if (child < 0 || read(ends[0], &listener, sizeof listener) != sizeof listener) return errno = 0, -1;
  if (listener == -EBUSY || listener == -EINVAL) return code_of((pid_t)child), reach_unheard(count, arguments);
  if (listener < 0) return fprintf(found, "no filter of our own: %s", strerrorname_np(-listener)), errno = 0, -1;
  if (asks(listener, (pid_t)child, &open)) let_nothing_happen(listener);
  int code = code_of((pid_t)child);
  if (code == REACHED) return 0;
  return errno = code == NO_EFFECT ? 0 : code, -1;
}

static int clone3_user(int count, char **arguments) {
  (void)count, (void)arguments;
  struct clone_args how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  long pid = syscall(SYS_clone3, &how, sizeof how);
  if (pid == 0) _exit(0);
  return pid < 0 ? -1 : 0;
}

static int unshare_user(int count, char **arguments) {
  (void)count, (void)arguments;
  return unshare(CLONE_NEWUSER);
}

// A number that another architecture, or x32, uses for getpid: a filter that knows native numbers only would take it for another.
#if defined(__x86_64__)
// A kernel that answers no calls of i386 has no gate for them: whoever comes to it has a fault.
static void find_no_gate(int signal) { (void)signal, _exit(ENOSYS); }

static int foreign_architecture(int count, char **arguments) {
  (void)count, (void)arguments;
  long result;
  signal(SIGSEGV, find_no_gate);
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
  return result > 0 ? 0 : (errno = ENOSYS, -1);
}
static int foreign_numbers(int count, char **arguments) {
  (void)count, (void)arguments;
  return syscall(0x40000000 | SYS_getpid) > 0 ? 0 : -1;
}
#endif

const struct attempt call_attempts[] = {
    {"reach", 1, reach},
    {"clone3-user", 0, clone3_user},
    {"unshare-user", 0, unshare_user},
#if defined(__x86_64__)
    {"foreign-architecture", 0, foreign_architecture},
    {"foreign-numbers", 0, foreign_numbers},
#endif
    {NULL, 0, NULL},
};
