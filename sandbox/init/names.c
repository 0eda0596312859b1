// The names that exist in a sandbox: exact ones have an address each, for good; names that a wildcard
// matches get one of a bounded pool when they are first asked for, and keep it while an answer that told of it holds.
#include <arpa/inet.h>
#include <string.h>

#include "egress.h"
#include "init.h"

// 198.18.0.0/15 is set aside for benchmarks: no server of the world answers there.
#define EXACT_BASE 0xc6120000U
#define POOL_BASE 0xc6130000U

struct listener listeners[LISTENERS_MAX];
struct entry entries[ENTRIES_MAX];
size_t listener_count, entry_count;

static const struct egress_orders *granted;
static size_t exact_count;
static uint64_t clock_steps;

static bool matches(const char *pattern, const char *host, size_t length) {
  if (pattern[0] != '*') return strlen(pattern) == length && memcmp(pattern, host, length) == 0;
  const char *suffix = pattern + 1;
  size_t suffix_length = strlen(suffix);
  return length > suffix_length && memcmp(host + length - suffix_length, suffix, suffix_length) == 0;
}

static bool is_granted(const char *host, size_t length, uint16_t port) {
  for (size_t index = 0; index < granted->grant_count; index++)
    if (granted->grants[index].port == port && matches(granted->grants[index].host, host, length)) return true;
  return false;
}

static void add_listener(struct entry *entry, uint16_t port) {
  for (size_t index = 0; index < entry->listener_count; index++)
    if (listeners[entry->first_listener + index].port == port) return;
  if (listener_count == LISTENERS_MAX)
    refuse("egress", "listeners", "more than 2048 addresses and ports: grant fewer ports to wildcards");
  listeners[listener_count++] =
      (struct listener){.fd = -1, .port = port, .entry = (uint16_t)(entry - entries)};
  entry->listener_count++;
}

static struct entry *add_entry(void) {
  struct entry *entry = &entries[entry_count++];
  entry->first_listener = (uint16_t)listener_count;
  return entry;
}

static void name_entry(struct entry *entry, const char *host, size_t length) {
  memcpy(entry->host, host, length);
  entry->host[length] = '\0';
  entry->length = (uint8_t)length;
}

static struct entry *find(size_t from, size_t to, const char *host, size_t length) {
  for (size_t index = from; index < to; index++)
    if (entries[index].length == length && memcmp(entries[index].host, host, length) == 0) return &entries[index];
  return NULL;
}

static void plan_exact(const char *host) {
  size_t length = strlen(host);
  if (find(0, entry_count, host, length) != NULL) return;
  struct entry *entry = add_entry();
  name_entry(entry, host, length);
  for (size_t index = 0; index < granted->grant_count; index++)
    if (matches(granted->grants[index].host, host, length)) add_listener(entry, granted->grants[index].port);
}

void plan_names(const struct egress_orders *orders) {
  granted = orders;
  bool has_wildcards = false;
  for (size_t index = 0; index < orders->grant_count; index++)
    if (orders->grants[index].host[0] == '*')
      has_wildcards = true;
    else
      plan_exact(orders->grants[index].host);
  exact_count = entry_count;
  for (size_t place = 0; has_wildcards && place < orders->pool; place++) {
    struct entry *entry = add_entry();
    for (size_t index = 0; index < orders->grant_count; index++)
      if (orders->grants[index].host[0] == '*') add_listener(entry, orders->grants[index].port);
  }
}

struct in_addr address_of(size_t entry) {
  uint32_t address = entry < exact_count ? EXACT_BASE + 1 + (uint32_t)entry
                                         : POOL_BASE + 1 + (uint32_t)(entry - exact_count);
  return (struct in_addr){.s_addr = htonl(address)};
}

void use_entry(struct entry *entry) { entry->used = ++clock_steps; }

// Beyond its time an answer gets this, for who begins to dial at the end of it.
enum { DIAL_MS = 1000 };

// Whoever was told the address may still dial it, or says something through it.
static bool is_held(const struct entry *place, int64_t now) {
  return place->connections > 0 || (place->length > 0 && now - place->told_ms < TTL_S * 1000 + DIAL_MS);
}

// The free place that was idle for longest.
static struct entry *oldest_free_place(void) {
  struct entry *oldest = NULL;
  int64_t now = now_ms();
  for (size_t index = exact_count; index < entry_count; index++)
    if (!is_held(&entries[index], now) && (oldest == NULL || entries[index].used < oldest->used))
      oldest = &entries[index];
  return oldest;
}

// First closed, then opened: what dialled the name before is reset and not taken for the new one.
static bool give_place(struct entry *place, const char *host, size_t length) {
  struct listener *own = &listeners[place->first_listener];
  bool works = true;
  name_entry(place, host, length);
  for (size_t index = 0; index < place->listener_count; index++) {
    set_listening(&own[index], false);
    if (is_granted(host, length, own[index].port)) works &= set_listening(&own[index], true);
  }
  if (!works) name_entry(place, "", 0);
  return works;
}

static bool matches_wildcard(const char *host, size_t length) {
  for (size_t index = 0; index < granted->grant_count; index++)
    if (granted->grants[index].host[0] == '*' && matches(granted->grants[index].host, host, length)) return true;
  return false;
}

enum lookup look_up(const char *host, size_t length, struct in_addr *address) {
  if (length == 0 || length > HOST_MAX) return NAME_REFUSED;
  struct entry *entry = find(0, entry_count, host, length);
  if (entry == NULL) {
    if (!matches_wildcard(host, length)) return NAME_REFUSED;
    if (address == NULL) return NAME_LISTED;
    entry = oldest_free_place();
    if (entry == NULL || !give_place(entry, host, length)) return NAME_NO_PLACE;
  }
  if (address == NULL) return NAME_LISTED;
  use_entry(entry);
  entry->told_ms = now_ms();
  *address = address_of((size_t)(entry - entries));
  return NAME_LISTED;
}
