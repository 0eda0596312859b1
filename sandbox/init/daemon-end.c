// The guard's hold on the daemon itself: it wakes in its turn, nothing of its memory is left, and where it has given everything back and its exit hangs, it is ended.
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "init.h"

// Headers older than the kernel lack them; the numbers are those of every architecture.
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { EXIT_MS = 5000 };

struct daemon hold_daemon(void) {
  pid_t pid = getppid();
  return (struct daemon){.pid = pid, .fd = (int)syscall(SYS_pidfd_open, pid, 0)};
}

// A daemon that died before we asked for our parent has closed its end, and the parent is somebody else.
static bool is_ours(void) {
  struct pollfd said = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&said, 1, 0) == 0;
}

void wake_in_turn(const struct daemon *daemon) {
  const struct sched_param none = {0};
  if (!is_ours() || sched_getscheduler(daemon->pid) != SCHED_OTHER) return;
  sched_setscheduler(daemon->pid, SCHED_BATCH, &none);
}

void leave_no_core(const struct daemon *daemon) {
  const struct rlimit none = {0};
  if (is_ours()) prlimit(daemon->pid, RLIMIT_CORE, &none, NULL);
}

// Who says the number of our parent itself has lived since before it started us: the descriptor is of no other process.
const char *note_end(struct daemon *daemon, const char *pid) {
  char *end = NULL;
  if (pid[0] < '1' || pid[0] > '9' || strtol(pid, &end, 10) != daemon->pid || *end != '\0')
    return "not the pid of the guard's parent";
  if (daemon->fd < 0) return "the guard has no descriptor of its parent";
  daemon->deadline = now_ms() + EXIT_MS;
  return NULL;
}

// Returns whether there is something to read before the daemon is overdue.
static bool is_readable(const struct daemon *daemon, int fd) {
  struct pollfd wanted = {.fd = fd, .events = POLLIN};
  for (;;) {
    int64_t left = daemon->deadline - now_ms();
    int found = poll(&wanted, 1, left > 0 ? (int)left : 0);
    if (found >= 0 || errno != EINTR) return found > 0;
  }
}

bool speaks_in_time(const struct daemon *daemon, int fd) {
  return daemon->deadline == 0 || is_readable(daemon, fd);
}

void see_off(const struct daemon *daemon) {
  if (daemon->deadline == 0 || is_readable(daemon, daemon->fd)) return;
  syscall(SYS_pidfd_send_signal, daemon->fd, SIGKILL, NULL, 0);
}
