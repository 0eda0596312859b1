// Connections that the kernel ends before there is a packet of them: to a unix socket that is not there, such as another
// sandbox's door, to a link-local address without its interface, to a group. Who asks waits here for a look at the address.
//
// It is only looked at: the call goes on whatever is found, and the kernel judges what stands there by then. A process that
// forbids others to read its memory has its address untold, and PID 1 reads as the ancestor of all, which Yama allows.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "egress.h"

enum { PATH_ROOM = 4 * sizeof((struct sockaddr_un *)0)->sun_path + 1 };

// The C library asks there before it looks a name up by itself, once in a hundred times.
static bool is_name_cache(const char *path) {
  return strcmp(path, "/var/run/nscd/socket") == 0 || strcmp(path, "/run/nscd/socket") == 0;
}

static bool is_absent(pid_t pid, const char *path) {
  char whole[sizeof((struct sockaddr_un *)0)->sun_path + 64];
  struct stat found;
  if (*path == '/')
    snprintf(whole, sizeof whole, "/proc/%d/root%s", pid, path);
  else
    snprintf(whole, sizeof whole, "/proc/%d/cwd/%s", pid, path);
  return stat(whole, &found) != 0;
}

static void escape(const char *path, char shown[PATH_ROOM]) {
  static const char digits[] = "0123456789abcdef";
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
  for (; *path != '\0'; path++) {
    const unsigned char byte = (unsigned char)*path;
    if (strchr(plain, byte) != NULL) {
      *shown++ = (char)byte;
      continue;
    }
    *shown++ = '\\';
    *shown++ = 'x';
    *shown++ = digits[byte >> 4];
    *shown++ = digits[byte & 15];
  }
  *shown = '\0';
}

static bool put_local(pid_t pid, const struct sockaddr_un *at, size_t length, char line[LINE_ROOM]) {
  char path[sizeof at->sun_path + 1] = "", shown[PATH_ROOM];
  if (length <= offsetof(struct sockaddr_un, sun_path) || at->sun_path[0] == '\0') return false;
  memcpy(path, at->sun_path, length - offsetof(struct sockaddr_un, sun_path));
  if (is_name_cache(path) || !is_absent(pid, path)) return false;
  escape(path, shown);
  snprintf(line, LINE_ROOM, "local %s", shown);
  return true;
}

static bool is_mapped_group(const struct in6_addr *address) {
  const unsigned char *four = address->s6_addr + 12;
  return IN6_IS_ADDR_V4MAPPED(address) && (four[0] >> 4 == 0xe || memcmp(four, "\xff\xff\xff\xff", 4) == 0);
}

static bool put_six(const struct sockaddr_in6 *at, size_t length, char line[LINE_ROOM]) {
  char text[INET6_ADDRSTRLEN];
  if (length < offsetof(struct sockaddr_in6, sin6_scope_id)) return false;
  bool is_unscoped = length < sizeof *at || at->sin6_scope_id == 0;
  bool is_lost = IN6_IS_ADDR_MULTICAST(&at->sin6_addr) || is_mapped_group(&at->sin6_addr) || (is_unscoped && IN6_IS_ADDR_LINKLOCAL(&at->sin6_addr));
  if (!is_lost || inet_ntop(AF_INET6, &at->sin6_addr, text, sizeof text) == NULL) return false;
  snprintf(line, LINE_ROOM, "tcp %s %u", text, ntohs(at->sin6_port));
  return true;
}

bool look_at_connect(pid_t pid, uint64_t address, uint64_t length, char line[LINE_ROOM]) {
  union {
    sa_family_t family;
    struct sockaddr_un local;
    struct sockaddr_in6 six;
  } at;
  char path[32];
  size_t wanted = length < sizeof at.local ? (size_t)length : sizeof at.local;
  memset(&at, 0, sizeof at);
  snprintf(path, sizeof path, "/proc/%d/mem", pid);
  int memory = open(path, O_RDONLY | O_CLOEXEC);
  if (memory < 0) return snprintf(line, LINE_ROOM, "local -") > 0;
  ssize_t got = pread(memory, &at, wanted, (off_t)address);
  close(memory);
  if (got != (ssize_t)wanted || wanted < sizeof at.family) return false;
  if (at.family == AF_UNIX) return put_local(pid, &at.local, wanted, line);
  return at.family == AF_INET6 && put_six(&at.six, wanted, line);
}
