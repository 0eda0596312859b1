// PID 1's side of the watched filter. Kinds of socket that the filters keep out: whoever asks for one waits until it was told,
// and gets its errno. Connections that lead nowhere without a packet: who asks waits until it was told, and goes on.
//
// A thread answers. What it reads is the caller's memory, which may be a file on a share that hangs: then those who ask wait,
// and PID 1 goes on.
//
// The sandbox's own filter asks of the kinds too and has no listener: the kernel takes the newest filter's, which is ours, and
// without ours it says ENOSYS. So what is refused stays refused whatever becomes of this process.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

enum { TYPE_MASK = 0xf, TOLD_MS = 100, STACK_BYTES = 64 << 10 };

// Since Linux 6.6; headers may be older.
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP 1UL
#endif

static int listener = -1, teller = -1;

void open_watched(const struct egress_orders *orders, int told) {
  struct sock_fprog program = {.len = (unsigned short)orders->watched_count,
                               .filter = (struct sock_filter *)orders->watched};
  long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  // EBUSY where whoever runs us listens already: a kernel has one for a chain of filters.
  if (fd < 0) die("egress", "listener of the watched filter", errno);
  listener = (int)fd;
  teller = told;
  // Who asks hands its processor over and gets it back. An older kernel wakes each on whichever is free.
  (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

// The errno on which programs fall back, such as Go from MPTCP to TCP.
static int errno_of(unsigned family) {
  return family == AF_INET || family == AF_INET6 || family == AF_NETLINK ? EPROTONOSUPPORT : EAFNOSUPPORT;
}

// Until the relay has told it, so that nobody gets an answer and ends before that; of one that is stopped or gone PID 1 hears
// elsewhere, and does not wait for it long.
static void tell(const char *line) {
  char told;
  struct pollfd wait = {.fd = teller, .events = POLLIN};
  while (recv(teller, &told, 1, MSG_DONTWAIT) > 0) continue;
  if (send(teller, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL) > 0 && poll(&wait, 1, TOLD_MS) > 0)
    (void)recv(teller, &told, 1, MSG_DONTWAIT);
}

static struct seccomp_notif_resp answer_to(const struct seccomp_notif *asked) {
  char line[LINE_ROOM];
  const __u64 *arguments = asked->data.args;
  if (asked->data.nr == SYS_connect || asked->data.nr == SYS_sendto) {
    bool is_sent = asked->data.nr == SYS_sendto;
    const __u64 *address = arguments + (is_sent ? 4 : 1);
    // A datagram to a group or to everybody is told of where it fails.
    bool is_local_only = is_sent && (arguments[3] & MSG_FASTOPEN) == 0;
    if (look_at_connect((pid_t)asked->pid, address[0], address[1] & UINT32_MAX, line) &&
        (!is_local_only || strncmp(line, "local ", 6) == 0))
      tell(line);
    return (struct seccomp_notif_resp){.id = asked->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
  }
  unsigned family = (unsigned)arguments[0], type = (unsigned)arguments[1] & TYPE_MASK;
  snprintf(line, sizeof line, "socket %u %u %u", family, type, (unsigned)arguments[2]);
  tell(line);
  return (struct seccomp_notif_resp){.id = asked->id, .error = -errno_of(family)};
}

static void answer_one(void) {
  struct seccomp_notif asked;
  memset(&asked, 0, sizeof asked);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
    // ENOENT: who asked is gone.
    if (errno == EINTR || errno == ENOENT) return;
    die("egress", "listener of the watched filter", errno);
  }
  struct seccomp_notif_resp answer = answer_to(&asked);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0 && errno != ENOENT && errno != EINTR)
    die("egress", "answer of the watched filter", errno);
}

static void *answer_all(void *unused) {
  (void)unused;
  // PID 1 may have done so before this began.
  let_go_of_code();
  for (;;) answer_one();
  return NULL;
}

void answer_watched(void) {
  pthread_t thread;
  pthread_attr_t small;
  if (listener < 0) return;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK_BYTES);
  int error = pthread_create(&thread, &small, answer_all, NULL);
  if (error != 0) die("egress", "thread that answers the watched filter", error);
}
