// The relay's life: waits for whoever wants something, and serves each for one turn.
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

enum { EVENTS_A_TURN = 64 };

static int epoll = -1;

static void control(int operation, int fd, uint32_t events, enum source source, uint32_t index) {
  struct epoll_event event = {.events = events, .data.u64 = (uint64_t)source << 32 | index};
  if (epoll_ctl(epoll, operation, fd, &event) != 0) die("egress", "epoll", errno);
}

void watch(int fd, uint32_t events, enum source source, uint32_t index) {
  control(EPOLL_CTL_ADD, fd, events, source, index);
}

void change_watch(int fd, uint32_t events, enum source source, uint32_t index) {
  control(EPOLL_CTL_MOD, fd, events, source, index);
}

void unwatch(int fd) { control(EPOLL_CTL_DEL, fd, 0, SOURCE_LISTENER, 0); }

// What PID 1 saw: a line each. It waits until that is on its way.
static void pass_on(int told) {
  char line[LINE_ROOM];
  ssize_t got = recv(told, line, sizeof line - 1, MSG_DONTWAIT);
  if (got <= 0) return;
  line[got] = '\0';
  notice("%s", line);
  (void)send(told, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void serve(const char *door, int proxy, const struct epoll_event *event) {
  uint32_t index = (uint32_t)event->data.u64;
  switch ((enum source)(event->data.u64 >> 32)) {
    case SOURCE_LISTENER: accept_tunnels(door, WAY_CONNECT, index); break;
    case SOURCE_PROXY: accept_tunnels(door, WAY_PROXY, (uint32_t)proxy); break;
    case SOURCE_TUNNEL: pump_tunnel(index, event->events); break;
    case SOURCE_DATAGRAMS: serve_datagrams(); break;
    case SOURCE_RESOLVER: accept_resolver_client(); break;
    case SOURCE_RESOLVER_CLIENT: serve_resolver_client(index); break;
    case SOURCE_REFUSALS: read_refusals(); break;
    case SOURCE_GROUPS: read_groups(); break;
    case SOURCE_TOLD: pass_on((int)index); break;
    case SOURCE_NOTICES: serve_notices(event->events); break;
  }
}

void run_relay(const struct egress_orders *orders, int proxy, int told) {
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) die("egress", "epoll", errno);
  for (size_t index = 0; index < listener_count; index++)
    if (listeners[index].is_open) watch(listeners[index].fd, EPOLLIN, SOURCE_LISTENER, (uint32_t)index);
  watch(proxy, EPOLLIN, SOURCE_PROXY, 0);
  watch_resolver();
  watch(refusals_fd(), EPOLLIN, SOURCE_REFUSALS, 0);
  if (groups_fd() >= 0) watch(groups_fd(), EPOLLIN, SOURCE_GROUPS, 0);
  watch(told, EPOLLIN, SOURCE_TOLD, (uint32_t)told);
  watch_notices();
  let_go_of_code();
  for (;;) {
    struct epoll_event events[EVENTS_A_TURN];
    int timeout_ms = pump_ready_tunnels() ? 0 : notices_timeout_ms();
    int count = epoll_wait(epoll, events, EVENTS_A_TURN, timeout_ms);
    if (count < 0 && errno != EINTR) die("egress", "epoll", errno);
    for (int index = 0; index < count; index++) serve(orders->door, proxy, &events[index]);
  }
}
