// Sees every attempt that the kernel turned away, on the loopback interface where all of them end.
//
// Not the attempts are watched but their refusals: a server that talks to itself is nobody's business. A SYN that
// nobody takes is answered by a reset whose sequence number is 0; a datagram by an ICMP error that holds its head.
// The packet socket has to be open before the capabilities go; then the watched filter keeps every other one out.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include "egress.h"
#include "init.h"

enum { HEAD4 = 20, HEAD6 = 40, PACKET_BYTES = 128, PACKETS_A_TURN = 64 };
enum { ICMP4_UNREACHABLE = 3, ICMP4_ECHO = 8, ICMP6_UNREACHABLE = 1, ICMP6_ECHO = 128 };

static int packets = -1;

#define BYTE(offset) BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(offset))
#define HALF(offset) BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)(offset))
#define WORD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define BYTE_AT_X(offset) BPF_STMT(BPF_LD | BPF_B | BPF_IND, (offset))
#define WORD_AT_X(offset) BPF_STMT(BPF_LD | BPF_W | BPF_IND, (offset))
#define X_AFTER_HEAD4 BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0)
#define MASK(bits) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (bits))
// Each block below takes the packet or ends; `rest` counts the instructions of the block that follow.
#define UNLESS(value, rest) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (rest))
#define IF(value, rest) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (rest), 0)
#define TAKE BPF_STMT(BPF_RET | BPF_K, PACKET_BYTES)
#define LEAVE BPF_STMT(BPF_RET | BPF_K, 0)
#define PROTOCOL HALF(SKF_AD_OFF + SKF_AD_PROTOCOL)

enum { FLAGS = 0x17, RST_ACK = 0x14, FIRST_GROUP = 0xe0 };

static void attach_filter(void) {
  struct sock_filter filter[] = {
      // Once each: on its way in, not on its way out.
      BYTE(SKF_AD_OFF + SKF_AD_PKTTYPE), UNLESS(PACKET_OUTGOING, 1), LEAVE,
      // A reset that answers a SYN.
      PROTOCOL, UNLESS(ETH_P_IP, 9), BYTE(9), UNLESS(IPPROTO_TCP, 7), X_AFTER_HEAD4, BYTE_AT_X(13), MASK(FLAGS),
      UNLESS(RST_ACK, 3), WORD_AT_X(4), UNLESS(0, 1), TAKE,
      // Datagrams to a group or to everybody, where datagrams.c could not have them fail: nobody answers them.
      PROTOCOL, UNLESS(ETH_P_IP, 5), BYTE(9), UNLESS(IPPROTO_UDP, 3), BYTE(16),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_GROUP, 0, 1), TAKE,
      // ICMP: an error, or an echo request.
      PROTOCOL, UNLESS(ETH_P_IP, 7), BYTE(9), UNLESS(IPPROTO_ICMP, 5), X_AFTER_HEAD4, BYTE_AT_X(0),
      IF(ICMP4_UNREACHABLE, 1), UNLESS(ICMP4_ECHO, 1), TAKE,
      // Any other protocol.
      PROTOCOL, UNLESS(ETH_P_IP, 5), BYTE(9), IF(IPPROTO_TCP, 3), IF(IPPROTO_UDP, 2), IF(IPPROTO_ICMP, 1), TAKE,
      // The same for IPv6; what has extension headers is not looked at.
      PROTOCOL, UNLESS(ETH_P_IPV6, 8), BYTE(6), UNLESS(IPPROTO_TCP, 6), BYTE(HEAD6 + 13), MASK(FLAGS),
      UNLESS(RST_ACK, 3), WORD(HEAD6 + 4), UNLESS(0, 1), TAKE,
      PROTOCOL, UNLESS(ETH_P_IPV6, 5), BYTE(6), UNLESS(IPPROTO_UDP, 3), BYTE(24), UNLESS(0xff, 1), TAKE,
      PROTOCOL, UNLESS(ETH_P_IPV6, 6), BYTE(6), UNLESS(IPPROTO_ICMPV6, 4), BYTE(HEAD6),
      IF(ICMP6_UNREACHABLE, 1), UNLESS(ICMP6_ECHO, 1), TAKE,
      PROTOCOL, UNLESS(ETH_P_IPV6, 7), BYTE(6), IF(IPPROTO_TCP, 5), IF(IPPROTO_UDP, 4), IF(IPPROTO_ICMPV6, 3),
      IF(IPPROTO_HOPOPTS, 2), IF(IPPROTO_FRAGMENT, 1), TAKE,
      LEAVE,
  };
  struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
  if (setsockopt(packets, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    die("egress", "filter of refusals", errno);
}

void open_refusals(void) {
  struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = LOOPBACK};
  // Of no protocol until the filter stands: not a packet comes before.
  packets = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (packets < 0) die("egress", "packet socket (the sandbox tool must leave CAP_NET_RAW)", errno);
  attach_filter();
  if (bind(packets, (const struct sockaddr *)&at, sizeof at) != 0) die("egress", "packet socket", errno);
}

int refusals_fd(void) { return packets; }

static unsigned u16_at(const unsigned char *at) { return (unsigned)at[0] << 8 | at[1]; }

static const char *shown(int family, const unsigned char *address) {
  static char text[INET6_ADDRSTRLEN];
  return inet_ntop(family, address, text, sizeof text) == NULL ? "?" : text;
}

// The head of what was sent, out of the error that answers it.
static void tell_unreachable4(const unsigned char *inner, size_t length) {
  if (length < HEAD4) return;
  size_t head = (size_t)(inner[0] & 15) * 4;
  if (inner[9] != IPPROTO_UDP)
    notice("other %u", inner[9]);
  else if (length >= head + 4)
    notice("udp %s %u", shown(AF_INET, inner + 16), u16_at(inner + head + 2));
}

static void tell_unreachable6(const unsigned char *inner, size_t length) {
  if (length < HEAD6 + 4) return;
  if (inner[6] != IPPROTO_UDP)
    notice("other %u", inner[6]);
  else
    notice("udp %s %u", shown(AF_INET6, inner + 24), u16_at(inner + HEAD6 + 2));
}

static void tell4(const unsigned char *packet, size_t length) {
  size_t head = (size_t)(packet[0] & 15) * 4;
  if (length < head + 8) return;
  const unsigned char *body = packet + head;
  switch (packet[9]) {
    // The reset comes from where the SYN wanted to go.
    case IPPROTO_TCP: notice("tcp %s %u", shown(AF_INET, packet + 12), u16_at(body)); break;
    case IPPROTO_UDP: notice("udp %s %u", shown(AF_INET, packet + 16), u16_at(body + 2)); break;
    case IPPROTO_ICMP:
      if (body[0] == ICMP4_ECHO)
        notice("icmp %s", shown(AF_INET, packet + 16));
      else
        tell_unreachable4(body + 8, length - head - 8);
      break;
    default: notice("other %u", packet[9]);
  }
}

static void tell6(const unsigned char *packet, size_t length) {
  if (length < HEAD6 + 8) return;
  const unsigned char *body = packet + HEAD6;
  switch (packet[6]) {
    case IPPROTO_TCP: notice("tcp %s %u", shown(AF_INET6, packet + 8), u16_at(body)); break;
    case IPPROTO_UDP: notice("udp %s %u", shown(AF_INET6, packet + 24), u16_at(body + 2)); break;
    case IPPROTO_ICMPV6:
      if (body[0] == ICMP6_ECHO)
        notice("icmp %s", shown(AF_INET6, packet + 24));
      else
        tell_unreachable6(body + 8, length - HEAD6 - 8);
      break;
    default: notice("other %u", packet[6]);
  }
}

void tell_packet(const unsigned char *packet, size_t length) {
  if (length >= HEAD4 && packet[0] >> 4 == 4) tell4(packet, length);
  if (length >= HEAD6 && packet[0] >> 4 == 6) tell6(packet, length);
}

void read_refusals(void) {
  unsigned char packet[PACKET_BYTES];
  for (int count = 0; count < PACKETS_A_TURN; count++) {
    ssize_t got = recv(packets, packet, sizeof packet, 0);
    if (got <= 0) return;
    tell_packet(packet, (size_t)got);
  }
}
