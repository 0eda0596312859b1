// One route for each protocol: whatever address is dialled is local, so that it is answered, or refused, at once and here.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

// The last of the addresses that stand for names, and no name's.
#define OWN_ADDRESS 0xc613ffffU

struct route_request {
  struct nlmsghdr head;
  struct rtmsg route;
  struct rtattr attribute;
  uint32_t interface;
};

struct address_request {
  struct nlmsghdr head;
  struct ifaddrmsg own;
  struct rtattr attribute;
  struct in_addr address;
};

// Returns 0 or an errno.
static int ask_kernel(int netlink, const void *request, size_t length) {
  union {
    struct {
      struct nlmsghdr head;
      struct nlmsgerr error;
    } message;
    char bytes[1024];
  } reply;
  if (send(netlink, request, length, 0) != (ssize_t)length) return errno;
  ssize_t got = recv(netlink, &reply, sizeof reply, 0);
  if (got < 0) return errno;
  if ((size_t)got < sizeof reply.message || reply.message.head.nlmsg_type != NLMSG_ERROR) return EPROTO;
  return -reply.message.error.error;
}

// `ip route add local default dev lo`
static int add_route(int netlink, unsigned char family) {
  struct route_request request = {
      .head = {.nlmsg_len = sizeof request,
               .nlmsg_type = RTM_NEWROUTE,
               .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
      .route = {.rtm_family = family,
                .rtm_table = RT_TABLE_LOCAL,
                .rtm_protocol = RTPROT_BOOT,
                .rtm_scope = RT_SCOPE_HOST,
                .rtm_type = RTN_LOCAL},
      .attribute = {.rta_len = RTA_LENGTH(sizeof request.interface), .rta_type = RTA_OIF},
      .interface = LOOPBACK,
  };
  return ask_kernel(netlink, &request, sizeof request);
}

// An address of IPv4 that is not loopback's: without one glibc, asked with AI_ADDRCONFIG, holds that nobody here speaks IPv4.
static int add_own_address(int netlink) {
  struct address_request request = {
      .head = {.nlmsg_len = sizeof request,
               .nlmsg_type = RTM_NEWADDR,
               .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
      .own = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_scope = RT_SCOPE_UNIVERSE, .ifa_index = LOOPBACK},
      .attribute = {.rta_len = RTA_LENGTH(sizeof request.address), .rta_type = IFA_LOCAL},
      .address = {.s_addr = htonl(OWN_ADDRESS)},
  };
  return ask_kernel(netlink, &request, sizeof request);
}

// A kernel without IPv6, or with IPv6 switched off: its addresses can't be dialled at all.
static bool has_no_ipv6(int error) {
  return error == EAFNOSUPPORT || error == EOPNOTSUPP || error == EACCES || error == ENODEV;
}

void make_every_address_local(void) {
  int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (netlink < 0) die("egress", "netlink", errno);
  int error = add_route(netlink, AF_INET);
  if (error != 0) die("egress", "route of IPv4 (the sandbox tool must leave CAP_NET_ADMIN)", error);
  error = add_own_address(netlink);
  if (error != 0) die("egress", "address of lo", error);
  error = add_route(netlink, AF_INET6);
  if (error != 0 && !has_no_ipv6(error)) die("egress", "route of IPv6", error);
  close(netlink);
}
