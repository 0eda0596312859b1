// Attempts on sockets: whom a connection reaches, and what a name server says. Where nobody says anything an attempt is late.
#include "probes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/** What a host is given to answer what people state of it. */
enum { ANSWER_MS = 8000 };

socklen_t parse_address(const char *address, const char *port, struct sockaddr_storage *at) {
  struct sockaddr_in *four = (void *)at;
  struct sockaddr_in6 *six = (void *)at;
  memset(at, 0, sizeof *at);
  if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)atoi(port));
    return sizeof *four;
  }
  inet_pton(AF_INET6, address, &six->sin6_addr);
  six->sin6_family = AF_INET6;
  six->sin6_port = htons((uint16_t)atoi(port));
  return sizeof *six;
}

static int tcp(int count, char **arguments) {
  (void)count;
  struct sockaddr_storage at;
  socklen_t length = parse_address(arguments[0], arguments[1], &at);
  int fd = socket(at.ss_family, SOCK_STREAM, 0);
  return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&at, length);
}

// Not connected: whoever sends it hears of no error that comes later.
static int datagram(int count, char **arguments) {
  (void)count;
  struct sockaddr_storage at;
  socklen_t length = parse_address(arguments[0], arguments[1], &at);
  int fd = socket(at.ss_family, SOCK_DGRAM, 0);
  return fd < 0 ? -1 : sendto(fd, "x", 1, 0, (struct sockaddr *)&at, length) < 0 ? -1 : 0;
}

// Whether the kernel knows a way: a connected datagram socket sends nothing by itself.
static int route(int count, char **arguments) {
  (void)count;
  struct sockaddr_storage at;
  socklen_t length = parse_address(arguments[0], "53", &at);
  int fd = socket(at.ss_family, SOCK_DGRAM, 0);
  return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&at, length);
}

int connect_local(const char *name) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  size_t length = strlen(name);
  if (length >= sizeof at.sun_path) return errno = ENAMETOOLONG, -1;
  memcpy(at.sun_path, name, length);
  if (at.sun_path[0] == '@') at.sun_path[0] = '\0';
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
  return fd < 0 || connect(fd, (struct sockaddr *)&at, bytes) != 0 ? -1 : fd;
}

static int local(int count, char **arguments) {
  (void)count;
  return connect_local(arguments[0]);
}

// Takes an address for itself, however willing it is to share it.
static int bind_to(int count, char **arguments) {
  (void)count;
  struct sockaddr_storage at;
  int yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t length = parse_address(arguments[0], arguments[1], &at);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
  return bind(fd, (struct sockaddr *)&at, length) != 0 ? -1 : listen(fd, 1);
}

// Holds a listener on 127.0.0.1 and, unless it is "-", an abstract name, as a sandbox beside this one would, until the attempt is ended.
static int hold_listeners(int count, char **arguments) {
  (void)count;
  struct sockaddr_storage at;
  socklen_t length = parse_address("127.0.0.1", arguments[0], &at);
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s", arguments[1]);
  int inet = socket(AF_INET, SOCK_STREAM, 0), unixes = socket(AF_UNIX, SOCK_STREAM, 0);
  socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(arguments[1]));
  if (bind(inet, (struct sockaddr *)&at, length) != 0 || listen(inet, 8) != 0) return -1;
  bool is_named = strcmp(arguments[1], "-") != 0;
  if (is_named && (bind(unixes, (struct sockaddr *)&name, bytes) != 0 || listen(unixes, 8) != 0)) return -1;
  // The process that answers goes on holding them; the attempt itself is over.
  pid_t pid = fork();
  if (pid == 0) {
    fclose(found);
    alarm(0);
    for (;;) pause();
  }
  return pid < 0 ? -1 : 0;
}

static size_t put_name(unsigned char *at, const char *name) {
  size_t length = 0;
  while (*name != '\0') {
    size_t label = strcspn(name, ".");
    if (label > 63) break;
    at[length++] = (unsigned char)label;
    memcpy(at + length, name, label);
    length += label;
    name += label + (name[label] == '.');
  }
  at[length++] = 0;
  return length;
}

// Why an answer has nothing in it: ENOENT (no such name), EACCES (refused), ENODATA; a server that failed says nothing of the name.
static int nothing_by(int code) {
  return errno = code == 2 ? 0 : code == 3 ? ENOENT : code == 5 ? EACCES : ENODATA, -1;
}

// dns SERVER PORT NAME TYPE [CLASS]: open where the answer has at least one record.
static int dns(int count, char **arguments) {
  unsigned char query[512] = {0x53, 0x50, 1, 0, 0, 1}, reply[1500];
  struct sockaddr_storage at;
  if (strlen(arguments[2]) > 400) return errno = E2BIG, -1;
  socklen_t length = parse_address(arguments[0], arguments[1], &at);
  size_t bytes = 12 + put_name(query + 12, arguments[2]);
  query[bytes + 1] = (unsigned char)atoi(arguments[3]);
  query[bytes + 3] = count > 4 ? (unsigned char)atoi(arguments[4]) : 1;
  bytes += 4;
  int fd = socket(at.ss_family, SOCK_DGRAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, length) != 0) return -1;
  if (send(fd, query, bytes, 0) < 0) return -1;
  ssize_t got = recv(fd, reply, sizeof reply, 0);
  if (got < 12) return got < 0 ? -1 : (errno = EBADMSG, -1);
  int code = reply[3] & 15, answers = reply[6] << 8 | reply[7];
  fprintf(found, "rcode %d, %d records", code, answers);
  if (code == 0 && answers > 0) return 0;
  return nothing_by(code);
}

static size_t skip_name(const unsigned char *at, size_t place, size_t end) {
  while (place < end && at[place] != 0 && (at[place] & 0xc0) == 0) place += 1u + at[place];
  return place + (place < end && at[place] != 0 ? 2 : 1);
}

// Reads the first address of an answer; 0 where it has none.
static int first_address(const unsigned char *reply, size_t bytes, char *address, size_t room) {
  size_t place = skip_name(reply, 12, bytes) + 4;
  for (int left = reply[6] << 8 | reply[7]; left > 0; left--) {
    place = skip_name(reply, place, bytes);
    if (place + 10 > bytes) return 0;
    size_t length = (size_t)(reply[place + 8] << 8 | reply[place + 9]);
    if (place + 10 + length > bytes) return 0;
    if (reply[place + 1] == 1 && length == 4) return inet_ntop(AF_INET, reply + place + 10, address, (socklen_t)room) != NULL;
    place += 10 + length;
  }
  return 0;
}

// Says bytes, given in hexadecimal, and tells how many come back; ETIMEDOUT or ECONNRESET where none does.
static int say_bytes(int fd, const char *hexadecimal) {
  unsigned char said[4096], heard[4096];
  size_t bytes = 0;
  while (bytes < sizeof said && sscanf(hexadecimal + 2 * bytes, "%2hhx", &said[bytes]) == 1) bytes++;
  if (send(fd, said, bytes, MSG_NOSIGNAL) < 0) return -1;
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  if (poll(&wait, 1, ANSWER_MS) == 0) return errno = ETIMEDOUT, -1;
  ssize_t got = recv(fd, heard, sizeof heard, 0);
  if (got <= 0) return got < 0 ? -1 : (errno = ECONNRESET, -1);
  return fprintf(found, "%zd bytes came back", got) > 0 ? 0 : -1;
}

// say ADDRESS PORT BYTES
static int say(int count, char **arguments) {
  (void)count;
  struct sockaddr_storage at;
  socklen_t length = parse_address(arguments[0], arguments[1], &at);
  int fd = socket(at.ss_family, SOCK_STREAM, 0);
  return fd < 0 || connect(fd, (struct sockaddr *)&at, length) != 0 ? -1 : say_bytes(fd, arguments[2]);
}

// host SERVER NAME PORT BYTES: asks the server for an address, connects to it and says the bytes.
static int host(int count, char **arguments) {
  (void)count;
  unsigned char query[512] = {0x53, 0x50, 1, 0, 0, 1}, reply[1500];
  char address[INET_ADDRSTRLEN];
  struct sockaddr_storage at;
  if (strlen(arguments[1]) > 400) return errno = E2BIG, -1;
  socklen_t length = parse_address(arguments[0], "53", &at);
  size_t bytes = 12 + put_name(query + 12, arguments[1]);
  query[bytes + 1] = query[bytes + 3] = 1;
  int fd = socket(at.ss_family, SOCK_DGRAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, length) != 0) return -1;
  if (send(fd, query, bytes + 4, 0) < 0) return -1;
  ssize_t got = recv(fd, reply, sizeof reply, 0);
  if (got < 12) return got < 0 ? -1 : (errno = EBADMSG, -1);
  if (!first_address(reply, (size_t)got, address, sizeof address)) return nothing_by(reply[3] & 15);
  fprintf(found, "%s, ", address);
  fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, parse_address(address, arguments[2], &at)) != 0) return -1;
  return say_bytes(fd, arguments[3]);
}

// dns-many SERVER SUFFIX COUNT: asks for an address of so many names, and tells how many have one, and how many addresses that are.
static int dns_many(int count, char **arguments) {
  (void)count;
  enum { MOST = 512 };
  static char addresses[MOST][INET_ADDRSTRLEN];
  struct sockaddr_storage at;
  int wanted = atoi(arguments[2]), answered = 0, different = 0;
  if (wanted > MOST || strlen(arguments[1]) > 200) return errno = E2BIG, -1;
  socklen_t length = parse_address(arguments[0], "53", &at);
  int fd = socket(at.ss_family, SOCK_DGRAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, length) != 0) return -1;
  for (int index = 0; index < wanted; index++) {
    unsigned char query[512] = {0x53, 0x50, 1, 0, 0, 1}, reply[1500];
    char name[256];
    snprintf(name, sizeof name, "n%d.%s", index, arguments[1]);
    size_t bytes = 12 + put_name(query + 12, name);
    query[bytes + 1] = query[bytes + 3] = 1;
    if (send(fd, query, bytes + 4, 0) < 0) return -1;
    alarm(PATIENCE_S); // whoever gets on is not late
    ssize_t got = recv(fd, reply, sizeof reply, 0);
    if (got < 12 || !first_address(reply, (size_t)got, addresses[answered], sizeof *addresses)) continue;
    bool is_new = true;
    for (int other = 0; other < answered; other++) is_new &= strcmp(addresses[other], addresses[answered]) != 0;
    different += is_new;
    answered++;
  }
  return fprintf(found, "%d %d", answered, different) > 0 ? 0 : -1;
}

const struct attempt network_attempts[] = {
    {"tcp", 2, tcp}, {"route", 1, route}, {"local", 1, local}, {"hold-listeners", 2, hold_listeners},
    {"datagram", 2, datagram}, {"dns", 4, dns}, {"bind", 2, bind_to}, {"host", 4, host}, {"say", 3, say},
    {"dns-many", 3, dns_many}, {NULL, 0, NULL},
};
