// Words to netfilter: messages of netlink laid out one after another, and what the kernel says to them.
#include "netfilter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "init.h"

static void *grow(struct batch *batch, size_t length) {
  size_t room = NLMSG_ALIGN(length);
  if (room > sizeof batch->bytes - batch->length) die("egress", "rules for datagrams", ENOSPC);
  void *at = memset(batch->bytes + batch->length, 0, room);
  batch->length += room;
  return at;
}

struct nlmsghdr *begin(struct batch *batch, uint16_t type, uint16_t flags, uint8_t family) {
  struct nlmsghdr *head = grow(batch, sizeof *head);
  head->nlmsg_type = type;
  head->nlmsg_flags = NLM_F_REQUEST | flags;
  struct nfgenmsg *family_head = grow(batch, sizeof *family_head);
  family_head->nfgen_family = family;
  family_head->version = NFNETLINK_V0;
  return head;
}

void end(struct batch *batch, struct nlmsghdr *head) {
  head->nlmsg_len = (uint32_t)(batch->bytes + batch->length - (unsigned char *)head);
}

struct nlattr *open_attribute(struct batch *batch, uint16_t type) {
  struct nlattr *attribute = grow(batch, sizeof *attribute);
  attribute->nla_type = type;
  return attribute;
}

void close_attribute(struct batch *batch, struct nlattr *attribute) {
  attribute->nla_len = (uint16_t)(batch->bytes + batch->length - (unsigned char *)attribute);
}

struct nlattr *open_nest(struct batch *batch, uint16_t type) {
  return open_attribute(batch, type | NLA_F_NESTED);
}

void put(struct batch *batch, uint16_t type, const void *bytes, size_t length) {
  struct nlattr *attribute = open_attribute(batch, type);
  memcpy(grow(batch, length), bytes, length);
  attribute->nla_len = (uint16_t)(NLA_HDRLEN + length);
}

void put_text(struct batch *batch, uint16_t type, const char *text) { put(batch, type, text, strlen(text) + 1); }

void put_number(struct batch *batch, uint16_t type, uint32_t value) {
  uint32_t sent = htonl(value);
  put(batch, type, &sent, sizeof sent);
}

// What the first answer says: an error, or that the message which asked for it was taken, and with it all before.
static int answer_of(int netlink) {
  union {
    struct {
      struct nlmsghdr head;
      struct nlmsgerr error;
    } message;
    char bytes[BATCH_BYTES];
  } reply;
  ssize_t got = recv(netlink, &reply, sizeof reply, 0);
  if (got < 0) return errno;
  if ((size_t)got < sizeof reply.message || reply.message.head.nlmsg_type != NLMSG_ERROR) return EPROTO;
  return -reply.message.error.error;
}

int say_to_netfilter(int netlink, const struct batch *batch) {
  if (send(netlink, batch->bytes, batch->length, 0) != (ssize_t)batch->length) return errno;
  return answer_of(netlink);
}
