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

static int listen_for(uint32_t number) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {.len = sizeof program / sizeof *program, .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}

// The caller's descriptors are the child's: it is enough to say the listener's number.
static void call_it(int told, char **arguments, int count) {
  long values[7] = {0};
  for (int index = 0; index < count && index < 7; index++) values[index] = (long)strtoull(arguments[index], NULL, 0);
  int listener = listen_for((uint32_t)values[0]);
  int number = listener < 0 ? -errno : listener;
  if (write(told, &number, sizeof number) != sizeof number || listener < 0) _exit(NO_EFFECT);
  long result = syscall(values[0], values[1], values[2], values[3], values[4], values[5], values[6]);
  _exit(result >= 0 ? 0 : errno);
}

static void let_nothing_happen(int listener) {
  struct seccomp_notif asked;
  memset(&asked, 0, sizeof asked);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
  struct seccomp_notif_resp reply = {.id = asked.id, .error = -REACHED};
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/*
 * reach NUMBER ARGUMENT...: a filter of our own, added last, asks us about this very call. The kernel takes the strictest
 * answer of all filters, and a refusal is stricter than a question: where an older filter refuses, nobody asks. Where none
 * does, we answer with an error of our own, and the call is never made. So it is harmless for any call, as any user.
 */
static int reach(int count, char **arguments) {
  int ends[2], listener = -1, status = 0;
  if (pipe(ends) != 0) return -1;
  long child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) call_it(ends[1], arguments, count);
  if (child < 0 || read(ends[0], &listener, sizeof listener) != sizeof listener) return errno = 0, -1;
  if (listener < 0) return fprintf(found, "no filter of our own: %s", strerrorname_np(-listener)), errno = 0, -1;
  struct pollfd wait = {.fd = listener, .events = POLLIN};
  while (poll(&wait, 1, -1) < 0 && errno == EINTR) continue;
  if (wait.revents & POLLIN) let_nothing_happen(listener);
  waitpid((pid_t)child, &status, 0);
  if (WIFSIGNALED(status)) kill(getpid(), SIGKILL);
  int code = WEXITSTATUS(status);
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
static int foreign_architecture(int count, char **arguments) {
  (void)count, (void)arguments;
  long result;
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
