// Takes what the supervisor grants of the network, and refuses what is malformed, doubled or more than fits.
#include <linux/filter.h>
#include <string.h>

#include "egress.h"
#include "init.h"

void take_door(struct egress_orders *orders, struct frame *frame) {
  const char *path = take_text(frame);
  uint32_t port = take_u32(frame), pool = take_u32(frame);
  if (orders->door != NULL) refuse("egress", "door", "given twice");
  // What connect takes of a unix socket's path.
  if (path[0] != '/' || strlen(path) >= 108) refuse("egress", path, "not an absolute path of 107 bytes at most");
  if (port < 1 || port > 65535) refuse("egress", "proxy port", "not a port");
  if (pool > POOL_MAX) refuse("egress", "pool", "more than 256 addresses");
  orders->door = path;
  orders->proxy_port = (uint16_t)port;
  orders->pool = pool;
}

void take_watched(struct egress_orders *orders, struct frame *frame) {
  size_t bytes;
  const void *program = take_rest(frame, &bytes);
  if (orders->watched != NULL) refuse("egress", "watched filter", "given twice");
  if (bytes == 0 || bytes % sizeof *orders->watched != 0 || bytes / sizeof *orders->watched > FILTER_MAX)
    refuse("egress", "watched filter", "not 1 to 4096 instructions of 8 bytes");
  orders->watched = program;
  orders->watched_count = bytes / sizeof *orders->watched;
}

// Labels of 1 to 63 letters, digits, hyphens and underscores. The last one has a letter: it is no address.
static bool is_host(const char *host) {
  size_t label = 0;
  bool has_letter = false;
  if (strlen(host) > HOST_MAX) return false;
  for (const char *at = host;; at++) {
    if (*at == '.' || *at == '\0') {
      if (label == 0 || label > 63) return false;
      if (*at == '\0') return has_letter;
      label = 0;
      has_letter = false;
      continue;
    }
    bool is_letter = *at >= 'a' && *at <= 'z';
    if (!is_letter && !(*at >= '0' && *at <= '9') && *at != '-' && *at != '_') return false;
    has_letter |= is_letter;
    label++;
  }
}

void take_grant(struct egress_orders *orders, struct frame *frame) {
  uint32_t port = take_u32(frame);
  const char *host = take_text(frame);
  bool is_wild = strncmp(host, "*.", 2) == 0;
  const char *name = is_wild ? host + 2 : host;
  if (port < 1 || port > 65535) refuse("egress", host, "not a port");
  if (!is_host(name)) refuse("egress", host, "not a lower-case host name or *.name");
  if (is_wild && strchr(name, '.') == NULL) refuse("egress", host, "a wildcard with less than two labels");
  if (orders->grant_count == GRANTS_MAX) refuse("egress", host, "more than 512 grants");
  for (size_t index = 0; index < orders->grant_count; index++)
    if (orders->grants[index].port == port && strcmp(orders->grants[index].host, host) == 0)
      refuse("egress", host, "granted twice");
  orders->grants[orders->grant_count++] = (struct grant){.host = host, .port = (uint16_t)port};
}

void expect_whole_egress(const struct egress_orders *orders) {
  if (orders->grant_count > 0 && orders->door == NULL) refuse("egress", "door", "missing before the report");
  if ((orders->door == NULL) != (orders->watched == NULL))
    refuse("egress", "watched filter", "a door and this filter go together");
  for (size_t index = 0; index < orders->grant_count; index++)
    if (orders->grants[index].host[0] == '*' && orders->pool == 0)
      refuse("egress", orders->grants[index].host, "a wildcard needs a pool");
}
