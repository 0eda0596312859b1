// A listening socket for each address and port that is granted: any other is refused by the kernel itself.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

enum { BACKLOG = 256 };

static int bind_tcp(struct in_addr address, uint16_t port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address};
  char shown[64];
  snprintf(shown, sizeof shown, "listener of port %u", port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) die("egress", shown, errno);
  if (bind(fd, (const struct sockaddr *)&at, sizeof at) != 0) die("egress", shown, errno);
  return fd;
}

int open_tcp_listener(struct in_addr address, uint16_t port) {
  int fd = bind_tcp(address, port);
  if (listen(fd, BACKLOG) != 0) die("egress", "listen", errno);
  return fd;
}

// While CAP_NET_BIND_SERVICE is there, for those of the pool too; they listen once a name has their address.
void bind_listeners(void) {
  for (size_t index = 0; index < listener_count; index++) {
    struct listener *listener = &listeners[index];
    listener->fd = bind_tcp(address_of(listener->entry), listener->port);
    listener->is_open = entries[listener->entry].length > 0;
    if (listener->is_open && listen(listener->fd, BACKLOG) != 0) die("egress", "listen", errno);
  }
}

bool set_listening(struct listener *listener, bool is_open) {
  if (listener->is_open == is_open) return true;
  if (is_open) {
    if (listen(listener->fd, BACKLOG) != 0) return false;
    watch(listener->fd, EPOLLIN, SOURCE_LISTENER, (uint32_t)(listener - listeners));
  } else {
    unwatch(listener->fd);
    shutdown(listener->fd, SHUT_RDWR);
  }
  listener->is_open = is_open;
  return true;
}
