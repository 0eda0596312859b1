// In a sandbox that is only a trial: whether a datagram that leads nowhere fails where it is sent, as datagrams.c has it.
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include "init.h"

// A network for examples in books (RFC 5737), and the port of name servers.
#define NOBODY 0xc0000201U
enum { PORT = 53 };

int nowhere_main(void) {
  const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(NOBODY)};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return fd >= 0 && sendto(fd, "", 0, 0, (const struct sockaddr *)&at, sizeof at) < 0 && errno == EPERM ? 0 : 1;
}
