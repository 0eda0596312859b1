// Connections that the kernel ends before there is a packet of them: to a unix socket that is not there, such as another
// sandbox's door, to a link-local address without its interface, to a group, to everybody. Who asks waits here for a look at
// the address.
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
#include <sys/un.h>
#include <unistd.h>

#include "egress.h"

enum { PATH_ROOM = 4 * sizeof((struct sockaddr_un *)0)->sun_path + 1 };
// Of the list of unix sockets: what is read at once, and how often; a name that comes later counts as absent.
enum { LISTED_BYTES = 4096, PARTS_MOST = 64 };

// The C library asks there before it looks a name up by itself, once in a hundred times.
static bool is_name_cache(const char *path) {
  return strcmp(path, "/var/run/nscd/socket") == 0 || strcmp(path, "/run/nscd/socket") == 0;
}

// Names without a path are the network namespace's, and so the sandbox's own; the kernel lists them with `@` for each NUL.
static bool is_unbound(const char *name, size_t length) {
  char wanted[sizeof((struct sockaddr_un *)0)->sun_path + 2] = " ", listed[LISTED_BYTES];
  size_t wanted_bytes = length + 2, held = 0;
  for (size_t at = 0; at < length; at++) wanted[at + 1] = name[at] == '\0' ? '@' : name[at];
  wanted[length + 1] = '\n';
  int list = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
  bool is_found = false;
  for (int part = 0; list >= 0 && !is_found && part < PARTS_MOST; part++) {
    ssize_t got = read(list, listed + held, sizeof listed - held);
    if (got <= 0) break;
    held += (size_t)got;
    is_found = memmem(listed, held, wanted, wanted_bytes) != NULL;
    size_t kept = held < wanted_bytes ? held : wanted_bytes - 1;
    memmove(listed, listed + held - kept, kept);
    held = kept;
  }
  if (list >= 0) close(list);
  return !is_found;
}

static void escape(const char *path, size_t length, char shown[PATH_ROOM]) {
  static const char digits[] = "0123456789abcdef";
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
  for (const char *end = path + length; path < end; path++) {
    const unsigned char byte = (unsigned char)*path;
    if (byte != 0 && strchr(plain, byte) != NULL) {
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
  if (length <= offsetof(struct sockaddr_un, sun_path)) return false;
  size_t letters = length - offsetof(struct sockaddr_un, sun_path);
  memcpy(path, at->sun_path, letters);
  bool is_named = path[0] != '\0';
  if (is_named) letters = strlen(path);
  if (is_named ? is_name_cache(path) || !is_absent(pid, path) : !is_unbound(path, letters)) return false;
  escape(path, letters, shown);
  snprintf(line, LINE_ROOM, "local %s", shown);
  return true;
}

// A group, or everybody.
static bool is_lost_four(const unsigned char four[4]) {
  return four[0] >> 4 == 0xe || memcmp(four, "\xff\xff\xff\xff", 4) == 0;
}

static bool put_four(const struct sockaddr_in *at, size_t length, char line[LINE_ROOM]) {
  char text[INET_ADDRSTRLEN];
  if (length < offsetof(struct sockaddr_in, sin_zero) || !is_lost_four((const unsigned char *)&at->sin_addr)) return false;
  snprintf(line, LINE_ROOM, "tcp %s %u", inet_ntop(AF_INET, &at->sin_addr, text, sizeof text), ntohs(at->sin_port));
  return true;
}

static bool put_six(const struct sockaddr_in6 *at, size_t length, char line[LINE_ROOM]) {
  char text[INET6_ADDRSTRLEN];
  if (length < offsetof(struct sockaddr_in6, sin6_scope_id)) return false;
  bool is_mapped = IN6_IS_ADDR_V4MAPPED(&at->sin6_addr) && is_lost_four(at->sin6_addr.s6_addr + 12);
  bool is_unscoped = length < sizeof *at || at->sin6_scope_id == 0;
  bool is_lost = IN6_IS_ADDR_MULTICAST(&at->sin6_addr) || is_mapped || (is_unscoped && IN6_IS_ADDR_LINKLOCAL(&at->sin6_addr));
  if (!is_lost || inet_ntop(AF_INET6, &at->sin6_addr, text, sizeof text) == NULL) return false;
  snprintf(line, LINE_ROOM, "tcp %s %u", text, ntohs(at->sin6_port));
  return true;
}

bool look_at_connect(pid_t pid, uint64_t address, uint64_t length, char line[LINE_ROOM]) {
  union {
    sa_family_t family;
    struct sockaddr_un local;
    struct sockaddr_in four;
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
  if (at.family == AF_INET) return put_four(&at.four, wanted, line);
  return at.family == AF_INET6 && put_six(&at.six, wanted, line);
}
