// The way out of a sandbox whose network is an allowlist: what is ordered, and the parts of the process that keeps it.
#ifndef SALLYPORT_EGRESS_H
#define SALLYPORT_EGRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "frames.h"

struct sock_filter;

enum {
  HOST_MAX = 253,
  GRANTS_MAX = 512,
  POOL_MAX = 256,
  LISTENERS_MAX = 2048,
  ENTRIES_MAX = GRANTS_MAX + POOL_MAX,
  TUNNELS_MAX = 256,
  FILTER_MAX = 4096,  // instructions of a system-call filter, as the kernel has it
};

// `lo` is the first interface of every network namespace.
enum { LOOPBACK = 1 };

// One name, or one `*.name`, with one port.
struct grant {
  const char *host;
  uint16_t port;
};

struct egress_orders {
  // Path of the door in the sandbox; NULL where the network is empty
  const char *door;
  uint16_t proxy_port;
  uint32_t pool;
  // The filter that tells of sockets that are refused; NULL without a door
  const struct sock_filter *watched;
  size_t watched_count;
  size_t grant_count;
  struct grant grants[GRANTS_MAX];
};

// egress-orders.c: the frames `D`, `W` and `N`, and what only the whole can be judged by.
void take_door(struct egress_orders *orders, struct frame *frame);
void take_watched(struct egress_orders *orders, struct frame *frame);
void take_grant(struct egress_orders *orders, struct frame *frame);
void expect_whole_egress(const struct egress_orders *orders);

// egress.c: PID 1's side. Opens all, forks the relay, and holds nothing of it afterwards but a way to tell it what the
// watched filter asks. Returns the relay's pid.
pid_t start_egress(const struct egress_orders *orders);

// routes.c: every address of IPv4 and IPv6 becomes local, so that what is dialled is answered here.
void make_every_address_local(void);

// datagrams.c: what is sent to where nothing answers fails for its sender too, where the kernel has nf_tables.
void refuse_datagrams(void);

// names.c: which names exist, and the address that stands for each.
struct listener {
  int fd;
  uint16_t port;
  uint16_t entry;
  bool is_open;
};
struct entry {
  char host[HOST_MAX + 1];  // empty: a place of the pool that no name has yet
  uint8_t length;
  uint16_t first_listener, listener_count;
  uint32_t connections;  // tunnels through it that live
  uint64_t used;         // when it was last asked for or dialled, in steps of a counter
  int64_t told_ms;       // when its address was last told to somebody
};
// What an answer says of the time for which it holds.
enum { TTL_S = 5 };
enum lookup { NAME_LISTED, NAME_REFUSED, NAME_NO_PLACE };
extern struct listener listeners[LISTENERS_MAX];
extern struct entry entries[ENTRIES_MAX];
extern size_t listener_count, entry_count;
// Lays out entries and listeners; opens nothing.
void plan_names(const struct egress_orders *orders);
struct in_addr address_of(size_t entry);
// `host` is lower case, without a dot at its end. On NAME_LISTED `address` is set, where it is not NULL: only who wants
// an address takes a place of the pool.
enum lookup look_up(const char *host, size_t length, struct in_addr *address);
void use_entry(struct entry *entry);

// listeners.c
void bind_listeners(void);
int open_tcp_listener(struct in_addr address, uint16_t port);
// Lets a listener of the pool take connections, or no more; what waits to be accepted is reset.
bool set_listening(struct listener *listener, bool is_open);

// resolver.c: one query in, one answer out; pure but for the pool.
enum { QUERY_MAX = 4096, ANSWER_MAX = 512, SHOWN_MAX = HOST_MAX };
struct refused_question {
  char name[SHOWN_MAX + 1];  // escaped; empty where nothing was refused
  bool is_listed;            // and there was no address for it
  uint16_t type;
};
size_t answer_query(const unsigned char *query, size_t length, unsigned char answer[ANSWER_MAX],
                    struct refused_question *refused);
// resolver-sockets.c
void open_resolver(void);
void watch_resolver(void);
void serve_datagrams(void);
void accept_resolver_client(void);
void serve_resolver_client(uint32_t client);

// refusals.c: sees what the kernel turned away on the loopback interface.
void open_refusals(void);
int refusals_fd(void);
void read_refusals(void);
// `packet` begins with the network's header.
void tell_packet(const unsigned char *packet, size_t length);
// groups.c: sees what datagrams.c lets fail without an error of the network. False where the kernel can't tell of it.
enum { TOLD_GROUP = 1 };
bool open_groups(void);
void close_groups(void);
// -1 where the kernel can't.
int groups_fd(void);
void read_groups(void);

// sockets.c: PID 1's, which answers what the watched filter asks, and tells it to the relay a line at a time.
enum { LINE_ROOM = 512 };
// `told` leads to the relay. The filter holds for this process and all that it starts from here.
void open_watched(const struct egress_orders *orders, int told);
// From a thread of its own, with what capabilities the caller has left. Nothing to do where the network is empty.
void answer_watched(void);

// absent.c
bool is_absent(pid_t pid, const char *path);

// connects.c: what the kernel will end without a packet. True where `line` says it.
bool look_at_connect(pid_t pid, uint64_t address, uint64_t length, char line[LINE_ROOM]);

// notices.c: what was refused, told to the door at a bounded rate.
void open_notices(const char *door);
void notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void watch_notices(void);
void serve_notices(uint32_t events);
int notices_timeout_ms(void);

// tunnels.c: connections, byte for byte, from a name's address to the door.
enum way { WAY_CONNECT, WAY_PROXY };
int dial_door(const char *door);
void accept_tunnels(const char *door, enum way way, uint32_t listener);
void pump_tunnel(uint32_t tag, uint32_t events);
// Goes on with tunnels that had more to move than one turn allows; false when none has.
bool pump_ready_tunnels(void);

// relay-loop.c: the relay's whole life.
enum source {
  SOURCE_LISTENER,
  SOURCE_PROXY,
  SOURCE_TUNNEL,
  SOURCE_DATAGRAMS,
  SOURCE_RESOLVER,
  SOURCE_RESOLVER_CLIENT,
  SOURCE_REFUSALS,
  SOURCE_GROUPS,
  SOURCE_TOLD,
  SOURCE_NOTICES
};
// Adds or changes what is waited for on a descriptor; the relay ends where the kernel refuses.
void watch(int fd, uint32_t events, enum source source, uint32_t index);
void change_watch(int fd, uint32_t events, enum source source, uint32_t index);
void unwatch(int fd);
_Noreturn void run_relay(const struct egress_orders *orders, int proxy, int told);

#endif
