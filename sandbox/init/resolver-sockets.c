// The resolver's sockets: datagrams, and a few clients over TCP.
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

enum { RESOLVER_ADDRESS = 0x7f000035, RESOLVER_PORT = 53, CLIENTS_MAX = 16, DATAGRAMS_A_TURN = 64 };

struct client {
  int fd;  // 0: nobody
  size_t have;
  uint64_t came;
  unsigned char bytes[2 + QUERY_MAX];
};

static int datagrams = -1, listener = -1;
static struct client clients[CLIENTS_MAX];
static uint64_t arrivals;

void open_resolver(void) {
  struct sockaddr_in at = {
      .sin_family = AF_INET, .sin_port = htons(RESOLVER_PORT), .sin_addr.s_addr = htonl(RESOLVER_ADDRESS)};
  datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (datagrams < 0) die("egress", "resolver", errno);
  if (bind(datagrams, (const struct sockaddr *)&at, sizeof at) != 0) die("egress", "resolver", errno);
  listener = open_tcp_listener(at.sin_addr, RESOLVER_PORT);
}

void watch_resolver(void) {
  watch(datagrams, EPOLLIN, SOURCE_DATAGRAMS, 0);
  watch(listener, EPOLLIN, SOURCE_RESOLVER, 0);
}

static size_t answer_and_tell(const unsigned char *query, size_t length, unsigned char *answer) {
  struct refused_question refused;
  size_t bytes = answer_query(query, length, answer, &refused);
  if (refused.name[0] != '\0') notice("%s %s %u", refused.is_listed ? "pool" : "name", refused.name, refused.type);
  return bytes;
}

void serve_datagrams(void) {
  static unsigned char query[QUERY_MAX];
  unsigned char answer[ANSWER_MAX];
  for (int count = 0; count < DATAGRAMS_A_TURN; count++) {
    struct sockaddr_in from;
    socklen_t from_length = sizeof from;
    // One longer than the buffer is cut, and then malformed: no query is that long.
    ssize_t got = recvfrom(datagrams, query, sizeof query, 0, (struct sockaddr *)&from, &from_length);
    if (got < 0) return;
    size_t bytes = answer_and_tell(query, (size_t)got, answer);
    // Where there is no room it is lost, as datagrams are.
    if (bytes > 0) (void)sendto(datagrams, answer, bytes, 0, (const struct sockaddr *)&from, from_length);
  }
}

static void drop(struct client *client) {
  close(client->fd);
  *client = (struct client){.fd = 0};
}

// A free place, else that of whoever came first: who says nothing keeps nobody out.
static struct client *take_place(void) {
  struct client *oldest = &clients[0];
  for (size_t index = 0; index < CLIENTS_MAX; index++) {
    if (clients[index].fd == 0) return &clients[index];
    if (clients[index].came < oldest->came) oldest = &clients[index];
  }
  drop(oldest);
  return oldest;
}

void accept_resolver_client(void) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  struct client *client = take_place();
  client->fd = fd;
  client->came = ++arrivals;
  watch(fd, EPOLLIN, SOURCE_RESOLVER_CLIENT, (uint32_t)(client - clients));
}

// Answers every whole query that is held; false where the client is to be dropped.
static bool answer_held(struct client *client) {
  for (;;) {
    if (client->have < 2) return true;
    size_t length = (size_t)(client->bytes[0] << 8 | client->bytes[1]);
    if (length > QUERY_MAX) return false;
    if (client->have < 2 + length) return true;
    unsigned char answer[2 + ANSWER_MAX];
    size_t bytes = answer_and_tell(client->bytes + 2, length, answer + 2);
    answer[0] = (unsigned char)(bytes >> 8);
    answer[1] = (unsigned char)bytes;
    // Who asks and does not read is not waited for.
    if (bytes == 0 || send(client->fd, answer, 2 + bytes, MSG_NOSIGNAL) != (ssize_t)(2 + bytes)) return false;
    client->have -= 2 + length;
    memmove(client->bytes, client->bytes + 2 + length, client->have);
  }
}

void serve_resolver_client(uint32_t index) {
  struct client *client = &clients[index];
  if (client->fd == 0) return;
  ssize_t got = read(client->fd, client->bytes + client->have, sizeof client->bytes - client->have);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) client->have += (size_t)got;
  if (got <= 0 || !answer_held(client)) drop(client);
}
