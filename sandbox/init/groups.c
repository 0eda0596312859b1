// Datagrams to a group or to everybody: datagrams.c has them fail where they are sent, and the kernel tells of each here.
#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
#include "netfilter.h"

enum { HEAD_BYTES = 128, MESSAGE_BYTES = 2048, MESSAGES_A_TURN = 64 };

static int told = -1;

// Once bound it needs no capability any more.
bool open_groups(void) {
  const struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
  const struct nfulnl_msg_config_mode mode = {.copy_range = htonl(HEAD_BYTES), .copy_mode = NFULNL_COPY_PACKET};
  struct batch batch = {.length = 0};
  told = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (told < 0) return false;
  struct nlmsghdr *head = begin(&batch, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, NLM_F_ACK, AF_UNSPEC);
  ((struct nfgenmsg *)NLMSG_DATA(head))->res_id = htons(TOLD_GROUP);
  put(&batch, NFULA_CFG_CMD, &bind, sizeof bind);
  put(&batch, NFULA_CFG_MODE, &mode, sizeof mode);
  end(&batch, head);
  if (say_to_netfilter(told, &batch) == 0) return true;
  close_groups();
  return false;
}

void close_groups(void) {
  close(told);
  told = -1;
}

int groups_fd(void) { return told; }

static void tell(const struct nlmsghdr *head) {
  size_t at = NLMSG_LENGTH(sizeof(struct nfgenmsg));
  const unsigned char *bytes = (const unsigned char *)head;
  for (struct nlattr attribute; at + sizeof attribute <= head->nlmsg_len; at += NLA_ALIGN(attribute.nla_len)) {
    memcpy(&attribute, bytes + at, sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > head->nlmsg_len - at) return;
    if (attribute.nla_type == NFULA_PAYLOAD) tell_packet(bytes + at + NLA_HDRLEN, attribute.nla_len - NLA_HDRLEN);
  }
}

void read_groups(void) {
  _Alignas(struct nlmsghdr) unsigned char bytes[MESSAGE_BYTES];
  for (int count = 0; count < MESSAGES_A_TURN; count++) {
    ssize_t got = recv(told, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < (ssize_t)NLMSG_HDRLEN) return;
    const struct nlmsghdr *head = (const struct nlmsghdr *)bytes;
    if (head->nlmsg_type == (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) && head->nlmsg_len <= (size_t)got) tell(head);
  }
}
