// Messages to netfilter, which says yes or no to a whole batch.
#ifndef SALLYPORT_NETFILTER_H
#define SALLYPORT_NETFILTER_H

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

enum { BATCH_BYTES = 4096 };

struct batch {
  size_t length;
  _Alignas(struct nlmsghdr) unsigned char bytes[BATCH_BYTES];
};

// A message, whose attributes follow until its end.
struct nlmsghdr *begin(struct batch *batch, uint16_t type, uint16_t flags, uint8_t family);
void end(struct batch *batch, struct nlmsghdr *head);
struct nlattr *open_attribute(struct batch *batch, uint16_t type);
void close_attribute(struct batch *batch, struct nlattr *attribute);
struct nlattr *open_nest(struct batch *batch, uint16_t type);
void put(struct batch *batch, uint16_t type, const void *bytes, size_t length);
void put_text(struct batch *batch, uint16_t type, const char *text);
void put_number(struct batch *batch, uint16_t type, uint32_t value);
// Returns 0 or an errno. One message of the batch asks for an answer.
int say_to_netfilter(int netlink, const struct batch *batch);

#endif
