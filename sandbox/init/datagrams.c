// Datagrams that lead nowhere fail where they are sent, whether their socket is connected or not: one netfilter table for
// each protocol, before there is a server. The kernel still answers with its ICMP error, which is what refusals.c sees.
//
// Not a wall: without it the same datagrams lead nowhere, and only their sender waits. So a kernel without nf_tables does.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"
#include "netfilter.h"

enum { CHECK_MOST = 3, VALUE_MOST = 16, FIRST_UNPRIVILEGED = 1024 };
enum { ICMP4_PORT_UNREACHABLE = 3, ICMP6_PORT_UNREACHABLE = 4 };

// Bytes of a packet's network or transport header, and what they have to be.
struct check {
  uint32_t base, offset, length, operation;
  unsigned char value[VALUE_MOST];
};

enum fate { PASSES, REFUSED, TOLD };

struct rule {
  enum fate fate;
  size_t count;
  struct check checks[CHECK_MOST];
};

#define TO(offset, length, operation, ...) \
  { NFT_PAYLOAD_NETWORK_HEADER, (offset), (length), (operation), { __VA_ARGS__ } }
#define PORT(operation, port) \
  { NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, (operation), { (port) >> 8, (port) & 0xff } }

// Let through: what is asked of the resolver, and what the sandbox says to itself on ports that its own programs can take.
// The last of each: what goes to a group or to everybody, of which there is no error to see. Where the kernel can't tell of
// it, it is let through too, and refusals.c sees it on its way.
static const struct rule rules4[] = {
    {PASSES, 2, {TO(16, 4, NFT_CMP_EQ, 127, 0, 0, 53), PORT(NFT_CMP_EQ, 53)}},
    {PASSES, 2, {TO(16, 1, NFT_CMP_EQ, 127), PORT(NFT_CMP_GTE, FIRST_UNPRIVILEGED)}},
    {REFUSED, 1, {TO(16, 1, NFT_CMP_LT, 0xe0)}},
    {REFUSED, 2, {TO(16, 1, NFT_CMP_GTE, 0xf0), TO(16, 1, NFT_CMP_LT, 0xff)}},
    {TOLD, 1, {TO(16, 1, NFT_CMP_GTE, 0xe0)}},
};
static const struct rule rules6[] = {
    {PASSES, 2, {TO(24, 16, NFT_CMP_EQ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), PORT(NFT_CMP_GTE, FIRST_UNPRIVILEGED)}},
    {REFUSED, 1, {TO(24, 1, NFT_CMP_NEQ, 0xff)}},
    {TOLD, 1, {TO(24, 1, NFT_CMP_EQ, 0xff)}},
};

static const char table[] = "sallyport", chain[] = "out";

static struct nlmsghdr *begin_nft(struct batch *batch, uint16_t type, uint16_t flags, uint8_t family) {
  return begin(batch, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_CREATE | flags, family);
}

// The border of a batch says in `res_id` whose it is.
static void put_border(struct batch *batch, uint16_t type) {
  struct nlmsghdr *head = begin(batch, type, 0, AF_UNSPEC);
  ((struct nfgenmsg *)NLMSG_DATA(head))->res_id = htons(NFNL_SUBSYS_NFTABLES);
  end(batch, head);
}

struct expression {
  struct nlattr *element, *data;
};

static struct expression open_expression(struct batch *batch, const char *name) {
  struct nlattr *element = open_nest(batch, NFTA_LIST_ELEM);
  put_text(batch, NFTA_EXPR_NAME, name);
  return (struct expression){element, open_nest(batch, NFTA_EXPR_DATA)};
}

static void close_expression(struct batch *batch, struct expression expression) {
  close_attribute(batch, expression.data);
  close_attribute(batch, expression.element);
}

static void put_comparison(struct batch *batch, uint32_t operation, const unsigned char *value, size_t length) {
  struct expression expression = open_expression(batch, "cmp");
  put_number(batch, NFTA_CMP_SREG, NFT_REG_1);
  put_number(batch, NFTA_CMP_OP, operation);
  struct nlattr *data = open_nest(batch, NFTA_CMP_DATA);
  put(batch, NFTA_DATA_VALUE, value, length);
  close_attribute(batch, data);
  close_expression(batch, expression);
}

static void put_is_datagram(struct batch *batch) {
  struct expression expression = open_expression(batch, "meta");
  put_number(batch, NFTA_META_DREG, NFT_REG_1);
  put_number(batch, NFTA_META_KEY, NFT_META_L4PROTO);
  close_expression(batch, expression);
  put_comparison(batch, NFT_CMP_EQ, (const unsigned char[]){IPPROTO_UDP}, 1);
}

static void put_check(struct batch *batch, const struct check *check) {
  struct expression expression = open_expression(batch, "payload");
  put_number(batch, NFTA_PAYLOAD_DREG, NFT_REG_1);
  put_number(batch, NFTA_PAYLOAD_BASE, check->base);
  put_number(batch, NFTA_PAYLOAD_OFFSET, check->offset);
  put_number(batch, NFTA_PAYLOAD_LEN, check->length);
  close_expression(batch, expression);
  put_comparison(batch, check->operation, check->value, check->length);
}

static void put_verdict(struct batch *batch, uint32_t code) {
  struct expression expression = open_expression(batch, "immediate");
  put_number(batch, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
  struct nlattr *data = open_nest(batch, NFTA_IMMEDIATE_DATA), *verdict = open_nest(batch, NFTA_DATA_VERDICT);
  put_number(batch, NFTA_VERDICT_CODE, code);
  close_attribute(batch, verdict);
  close_attribute(batch, data);
  close_expression(batch, expression);
}

// EPERM for the sender, and the ICMP error that a closed port answers with.
static void put_refusal(struct batch *batch, uint8_t family) {
  const uint8_t code = family == NFPROTO_IPV4 ? ICMP4_PORT_UNREACHABLE : ICMP6_PORT_UNREACHABLE;
  struct expression expression = open_expression(batch, "reject");
  put_number(batch, NFTA_REJECT_TYPE, NFT_REJECT_ICMP_UNREACH);
  put(batch, NFTA_REJECT_ICMP_CODE, &code, sizeof code);
  close_expression(batch, expression);
}

static void put_table(struct batch *batch, uint8_t family) {
  struct nlmsghdr *head = begin_nft(batch, NFT_MSG_NEWTABLE, 0, family);
  put_text(batch, NFTA_TABLE_NAME, table);
  end(batch, head);

  head = begin_nft(batch, NFT_MSG_NEWCHAIN, 0, family);
  put_text(batch, NFTA_CHAIN_TABLE, table);
  put_text(batch, NFTA_CHAIN_NAME, chain);
  put_text(batch, NFTA_CHAIN_TYPE, "filter");
  struct nlattr *hook = open_nest(batch, NFTA_CHAIN_HOOK);
  put_number(batch, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
  put_number(batch, NFTA_HOOK_PRIORITY, 0);
  close_attribute(batch, hook);
  end(batch, head);
}

// Its head is told, since no ICMP error answers it, and EPERM for the sender.
static void put_telling(struct batch *batch) {
  const uint16_t group = htons(TOLD_GROUP), at_once = htons(1);
  struct expression expression = open_expression(batch, "log");
  put(batch, NFTA_LOG_GROUP, &group, sizeof group);
  put(batch, NFTA_LOG_QTHRESHOLD, &at_once, sizeof at_once);
  close_expression(batch, expression);
  put_verdict(batch, NF_DROP);
}

static void put_rule(struct batch *batch, uint8_t family, const struct rule *rule, uint16_t flags) {
  struct nlmsghdr *head = begin_nft(batch, NFT_MSG_NEWRULE, NLM_F_APPEND | flags, family);
  put_text(batch, NFTA_RULE_TABLE, table);
  put_text(batch, NFTA_RULE_CHAIN, chain);
  struct nlattr *expressions = open_nest(batch, NFTA_RULE_EXPRESSIONS);
  put_is_datagram(batch);
  for (size_t index = 0; index < rule->count; index++) put_check(batch, &rule->checks[index]);
  switch (rule->fate) {
    case PASSES: put_verdict(batch, NF_ACCEPT); break;
    case REFUSED: put_refusal(batch, family); break;
    case TOLD: put_telling(batch); break;
  }
  close_attribute(batch, expressions);
  end(batch, head);
}

// Returns 0 or an errno.
static int add_table(int netlink, uint8_t family, const struct rule *rules, size_t count) {
  struct batch batch = {.length = 0};
  put_border(&batch, NFNL_MSG_BATCH_BEGIN);
  put_table(&batch, family);
  for (size_t index = 0; index < count; index++)
    put_rule(&batch, family, &rules[index], index + 1 == count ? NLM_F_ACK : 0);
  put_border(&batch, NFNL_MSG_BATCH_END);
  return say_to_netfilter(netlink, &batch);
}

// The kernel lacks nf_tables or a part of it, or whoever runs us keeps it from everybody.
static bool is_missing(int error) {
  return error == EPROTONOSUPPORT || error == EAFNOSUPPORT || error == EOPNOTSUPP || error == ENOENT || error == EACCES;
}

// Returns 0 or an errno.
static int add_tables(int netlink, bool tells) {
  size_t without = tells ? 0 : 1, count4 = sizeof rules4 / sizeof rules4[0], count6 = sizeof rules6 / sizeof rules6[0];
  int error = add_table(netlink, NFPROTO_IPV4, rules4, count4 - without);
  return error != 0 ? error : add_table(netlink, NFPROTO_IPV6, rules6, count6 - without);
}

void refuse_datagrams(void) {
  int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  bool tells = netlink >= 0 && open_groups();
  int error = netlink < 0 ? errno : add_tables(netlink, tells);
  // It knows of rules, and not of telling.
  if (tells && is_missing(error)) {
    close_groups();
    error = add_tables(netlink, false);
  }
  if (error != 0 && !is_missing(error)) die("egress", "rules for datagrams", error);
  if (netlink >= 0) close(netlink);
}
