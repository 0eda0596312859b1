// Connections from a name's address, or the proxy's port, to the door: every byte and both ends passed on.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

enum { BUFFER_BYTES = 64 << 10, ROUNDS_A_TURN = 8, ACCEPTS_A_TURN = 64 };

// One direction: what was read and not yet written. Nothing is read while something is held: that is the backpressure.
struct flow {
  unsigned char *bytes;
  size_t from, to;
  bool has_ended, is_shut;
  bool waits_for_room;  // where it goes
};

struct tunnel {
  bool is_used, is_ready, has_answered, has_door_left;
  uint32_t life;  // how many tunnels this place has had: an event of an older one is not taken for ours
  int client, door;
  struct entry *entry;  // NULL for the proxy's port
  struct flow up, down;
};

static struct tunnel tunnels[TUNNELS_MAX];
static _Alignas(4096) unsigned char buffers[TUNNELS_MAX][2][BUFFER_BYTES];

int dial_door(const char *path) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  memcpy(at.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static void reset(int client) {
  const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(client);
}

// The pages go back: a burst of connections is not kept in memory.
static void forget(struct tunnel *tunnel) {
  if (tunnel->entry != NULL) {
    tunnel->entry->connections--;
    use_entry(tunnel->entry);
  }
  close(tunnel->door);
  madvise(buffers[tunnel - tunnels], sizeof buffers[0], MADV_DONTNEED);
  *tunnel = (struct tunnel){.is_used = false, .life = tunnel->life + 1};
}

static void break_tunnel(struct tunnel *tunnel) {
  reset(tunnel->client);
  forget(tunnel);
}

static void finish_tunnel(struct tunnel *tunnel) {
  close(tunnel->client);
  forget(tunnel);
}

enum progress { WAITING, MORE, BROKEN };

static enum progress move(struct flow *flow, int from, int to) {
  for (int round = 0; round < ROUNDS_A_TURN; round++) {
    if (flow->from == flow->to && !flow->has_ended) {
      ssize_t got = read(from, flow->bytes, BUFFER_BYTES);
      if (got < 0) return errno == EAGAIN ? WAITING : errno == EINTR ? MORE : BROKEN;
      flow->has_ended = got == 0;
      flow->from = 0;
      flow->to = (size_t)got;
    }
    if (flow->from < flow->to) {
      ssize_t sent = send(to, flow->bytes + flow->from, flow->to - flow->from, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN ? WAITING : errno == EINTR ? MORE : BROKEN;
      flow->from += (size_t)sent;
    } else if (flow->has_ended) {
      if (!flow->is_shut && shutdown(to, SHUT_WR) != 0) return BROKEN;
      flow->is_shut = true;
      return WAITING;
    }
  }
  return MORE;
}

// Place, life and side of a tunnel, as its events carry them.
enum { PLACE_BITS = 8, LIFE_MASK = (1 << 23) - 1 };
_Static_assert(TUNNELS_MAX == 1 << PLACE_BITS, "a place fits its bits");

static uint32_t tag_of(const struct tunnel *tunnel, bool is_door) {
  return (tunnel->life & LIFE_MASK) << (PLACE_BITS + 1) | (uint32_t)(tunnel - tunnels) << 1 | is_door;
}

static const uint32_t edges = EPOLLIN | EPOLLRDHUP | (uint32_t)EPOLLET;

// Room is told of only where something waits for it: a unix socket tells of it each time that its other end reads.
static void mind_room(struct tunnel *tunnel, struct flow *flow, bool is_door) {
  bool waits = flow->from < flow->to;
  if (waits == flow->waits_for_room) return;
  flow->waits_for_room = waits;
  change_watch(is_door ? tunnel->door : tunnel->client, waits ? edges | EPOLLOUT : edges, SOURCE_TUNNEL,
               tag_of(tunnel, is_door));
}

static void turn(struct tunnel *tunnel) {
  enum progress up = move(&tunnel->up, tunnel->client, tunnel->door);
  if (up == BROKEN && !tunnel->has_door_left) {
    break_tunnel(tunnel);
    return;
  }
  bool was_quiet = !tunnel->has_answered;
  struct flow *down = &tunnel->down;
  // A door that ends without a word has refused, and a refusal is a reset: looked at before the end is passed on.
  if (was_quiet) {
    ssize_t got = read(tunnel->door, down->bytes, BUFFER_BYTES);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      break_tunnel(tunnel);
      return;
    }
    if (got > 0) {
      tunnel->has_answered = true;
      down->to = (size_t)got;
    }
  }
  enum progress progress = tunnel->has_answered ? move(down, tunnel->door, tunnel->client) : WAITING;
  if (progress == BROKEN)
    break_tunnel(tunnel);
  else if (down->is_shut && (tunnel->up.is_shut || tunnel->has_door_left))
    finish_tunnel(tunnel);
  else {
    tunnel->is_ready = up == MORE || progress == MORE;
    mind_room(tunnel, &tunnel->up, true);
    mind_room(tunnel, down, false);
  }
}

void pump_tunnel(uint32_t tag, uint32_t events) {
  struct tunnel *tunnel = &tunnels[tag >> 1 & (TUNNELS_MAX - 1)];
  bool is_door = (tag & 1) == 1;
  if (!tunnel->is_used || tag != tag_of(tunnel, is_door)) return;
  if ((events & EPOLLERR) != 0) {
    break_tunnel(tunnel);
    return;
  }
  // Both directions are over on the door's side: what it said before is still there to be read.
  if (is_door && (events & EPOLLHUP) != 0) tunnel->has_door_left = true;
  turn(tunnel);
}

bool pump_ready_tunnels(void) {
  bool is_any_ready = false;
  for (size_t index = 0; index < TUNNELS_MAX; index++) {
    if (!tunnels[index].is_used || !tunnels[index].is_ready) continue;
    turn(&tunnels[index]);
    is_any_ready |= tunnels[index].is_used && tunnels[index].is_ready;
  }
  return is_any_ready;
}

static struct tunnel *free_tunnel(void) {
  for (size_t index = 0; index < TUNNELS_MAX; index++)
    if (!tunnels[index].is_used) return &tunnels[index];
  return NULL;
}

// One too many, or nobody at the door.
static void tell_turned_away(int client, const struct listener *listener, bool is_full) {
  struct sockaddr_in at;
  socklen_t length = sizeof at;
  char shown[INET_ADDRSTRLEN];
  if (is_full && listener != NULL)
    notice("full %s %u", entries[listener->entry].host, listener->port);
  else if (getsockname(client, (struct sockaddr *)&at, &length) == 0)
    notice("%s %s %u", is_full ? "full" : "tcp", inet_ntop(AF_INET, &at.sin_addr, shown, sizeof shown),
           ntohs(at.sin_port));
}

static void open_tunnel(int client, const char *path, enum way way, struct listener *listener) {
  struct tunnel *tunnel = free_tunnel();
  int door = tunnel == NULL ? -1 : dial_door(path);
  if (door < 0) {
    tell_turned_away(client, listener, tunnel == NULL);
    reset(client);
    return;
  }
  size_t number = (size_t)(tunnel - tunnels);
  *tunnel = (struct tunnel){.is_used = true,
                            .life = tunnel->life,
                            .client = client,
                            .door = door,
                            .up = {.bytes = buffers[number][0]},
                            .down = {.bytes = buffers[number][1]}};
  if (way == WAY_CONNECT) {
    tunnel->entry = &entries[listener->entry];
    tunnel->entry->connections++;
    use_entry(tunnel->entry);
  }
  char *line = (char *)tunnel->up.bytes;
  tunnel->up.to = (size_t)(way == WAY_PROXY ? snprintf(line, BUFFER_BYTES, "SP1 proxy\n")
                                            : snprintf(line, BUFFER_BYTES, "SP1 connect %s %u\n",
                                                       tunnel->entry->host, listener->port));
  const int yes = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  watch(client, edges, SOURCE_TUNNEL, tag_of(tunnel, false));
  watch(door, edges, SOURCE_TUNNEL, tag_of(tunnel, true));
  turn(tunnel);
}

void accept_tunnels(const char *door, enum way way, uint32_t index) {
  struct listener *listener = way == WAY_CONNECT ? &listeners[index] : NULL;
  int from = way == WAY_CONNECT ? listener->fd : (int)index;
  for (int count = 0; count < ACCEPTS_A_TURN; count++) {
    int client = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return;
    open_tunnel(client, door, way, listener);
  }
}
