// PID 1's part of the way out: opens what takes a capability, forks the relay that has none, and keeps nothing.
#include <errno.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

enum { TUNNEL_DESCRIPTORS = 2 * TUNNELS_MAX, OTHER_DESCRIPTORS = 64 };

static void set_limit(int resource, rlim_t value) {
  const struct rlimit limit = {.rlim_cur = value, .rlim_max = value};
  if (setrlimit(resource, &limit) != 0) die("egress", "limits of the relay", errno);
}

// More than most programs are given; the hard limit stays, for the server's own.
static void make_room_for_descriptors(rlim_t needed) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) die("egress", "descriptors", errno);
  if (limit.rlim_cur >= needed) return;
  limit.rlim_cur = needed;
  if (limit.rlim_max < needed)
    refuse("egress", "descriptors", "the hard limit of open files is too low for the addresses and ports granted");
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) die("egress", "descriptors", errno);
}

// The child's side. No order of the server has come yet: neither its environment nor its files are in this memory.
static _Noreturn void become_relay(const struct egress_orders *orders, int proxy, int told, const int settled[2],
                                   rlim_t descriptors) {
  drop_all_capabilities();
  expect_no_capabilities();
  forbid_new_privileges();
  // 0 and 1 are /dev/null. The control channel and the server's streams are not the relay's.
  for (int fd = FD_CONTROL; fd <= FD_SERVER_STDERR; fd++) close(fd);
  if (dup2(STDIN_FILENO, STDERR_FILENO) < 0) die("egress", "stderr", errno);
  on_death(NULL, true);
  prctl(PR_SET_NAME, "egress");
  set_limit(RLIMIT_NOFILE, descriptors);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_FSIZE, 0);
  set_limit(RLIMIT_MEMLOCK, 0);
  // No child, no thread: counted are the processes that its user has already.
  set_limit(RLIMIT_NPROC, 0);
  close(settled[0]);
  close(settled[1]);
  run_relay(orders, proxy, told);
}

// Until the relay has given up its rights no server may be beside it. One that ended before is found gone later.
static void wait_until_settled(const int settled[2]) {
  char none;
  close(settled[1]);
  while (read(settled[0], &none, 1) < 0 && errno == EINTR) continue;
  close(settled[0]);
}

static void keep_only(int fd) {
  if (fd != FD_FIRST_UNLISTED && dup3(fd, FD_FIRST_UNLISTED, O_CLOEXEC) < 0) die("egress", "relay", errno);
  close_from(FD_FIRST_UNLISTED + 1);
}

pid_t start_egress(const struct egress_orders *orders) {
  struct rlimit before;
  plan_names(orders);
  rlim_t descriptors = listener_count + TUNNEL_DESCRIPTORS + OTHER_DESCRIPTORS;
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) die("egress", "descriptors", errno);
  make_room_for_descriptors(descriptors);
  make_every_address_local();
  refuse_datagrams();
  open_refusals();
  open_resolver();
  bind_listeners();
  int proxy = open_tcp_listener((struct in_addr){.s_addr = htonl(INADDR_LOOPBACK)}, orders->proxy_port);
  open_notices(orders->door);
  int told[2], settled[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, told) != 0) die("egress", "relay", errno);
  if (pipe2(settled, O_CLOEXEC) != 0) die("egress", "relay", errno);
  pid_t relay_pid = fork();
  if (relay_pid < 0) die("egress", "fork", errno);
  if (relay_pid == 0) become_relay(orders, proxy, told[1], settled, descriptors);
  wait_until_settled(settled);
  keep_only(told[0]);
  open_watched(orders, FD_FIRST_UNLISTED);
  if (setrlimit(RLIMIT_NOFILE, &before) != 0) die("egress", "descriptors", errno);
  return relay_pid;
}
