// Passes bytes on between TCP connections on loopback: the least that can stand between a client and a host.
//   tcp-relay PORT     prints the port where it listens, and dials 127.0.0.1:PORT for each connection
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/** Bytes taken at once; descriptors at most, of 200 connections two each */
enum { room = 65536, most = 1024 };

/** The other end of each connection, and whether this end has said all */
static struct {
  int peer;
  bool has_ended;
} ends[most];
static int poller;

static struct sockaddr_in loopback(int port) {
  return (struct sockaddr_in){
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void watch(int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (fd >= most) errx(1, "more than %d descriptors", most);
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) err(1, "epoll_ctl");
}

static void join(int client, int port) {
  struct sockaddr_in host = loopback(port);
  int up = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  if (client < 0 || up < 0) err(1, "socket");
  if (connect(up, (struct sockaddr *)&host, sizeof host) != 0) err(1, "connect");
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(up, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watch(client);
  watch(up);
  ends[client].peer = up;
  ends[up].peer = client;
  ends[client].has_ended = ends[up].has_ended = false;
}

/** Writes what can be read now to the other end; the end of either is the other's to hear, and both are closed after both. */
static void pass(int from) {
  static char bytes[room];
  int to = ends[from].peer;
  ssize_t had = read(from, bytes, room);
  for (ssize_t done = 0, wrote; done < had; done += wrote)
    if ((wrote = write(to, bytes + done, (size_t)(had - done))) <= 0) {
      had = 0;
      break;
    }
  if (had > 0) return;
  epoll_ctl(poller, EPOLL_CTL_DEL, from, NULL);
  shutdown(to, SHUT_WR);
  ends[from].has_ended = true;
  if (!ends[to].has_ended) return;
  close(from);
  close(to);
}

int main(int argc, char **argv) {
  if (argc != 2) errx(7, "usage: tcp-relay PORT");
  struct sockaddr_in here = loopback(0);
  socklen_t length = sizeof here;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  signal(SIGPIPE, SIG_IGN);
  if ((poller = epoll_create1(EPOLL_CLOEXEC)) < 0 || bind(listener, (struct sockaddr *)&here, length) != 0 ||
      listen(listener, most) != 0 || getsockname(listener, (struct sockaddr *)&here, &length) != 0)
    err(1, "listen");
  watch(listener);
  printf("%d\n", ntohs(here.sin_port));
  fflush(stdout);
  for (struct epoll_event event; epoll_wait(poller, &event, 1, -1) >= 0;)
    if (event.data.fd == listener)
      join(accept(listener, NULL, NULL), atoi(argv[1]));
    else
      pass(event.data.fd);
  return 1;
}
