// Attempts at a door: what comes back from it, for how long it stands open, and for how many.
#include "probes.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 3000 };

// Writes the text, with \r, \n and \xNN for these bytes; returns how many there are.
static size_t unescape(const char *from, char *said, size_t room) {
  size_t bytes = 0;
  for (; *from != '\0' && bytes < room; from++) {
    unsigned byte = 0;
    int is_number = from[0] == '\\' && from[1] == 'x' && sscanf(from + 2, "%2x", &byte) == 1;
    int escapes = from[0] == '\\' && (from[1] == 'r' || from[1] == 'n');
    said[bytes++] = is_number ? (char)byte : !escapes ? *from : from[1] == 'r' ? '\r' : '\n';
    from += is_number ? 3 : escapes;
  }
  return bytes;
}

// Connects to the socket of that path and says the text. Returns the socket, or -1.
static int say_locally(const char *path, const char *text) {
  char said[2048];
  size_t bytes = unescape(text, said, sizeof said);
  int fd = connect_local(path);
  return fd < 0 || send(fd, said, bytes, MSG_NOSIGNAL) != (ssize_t)bytes ? -1 : fd;
}

// exchange ADDRESS PORT TEXT, where an address may be the path of a socket: says the text and tells what comes back; ECONNRESET where nothing does.
static int exchange(int count, char **arguments) {
  (void)count;
  struct sockaddr_storage at;
  char said[2048], piece[1024];
  size_t bytes = unescape(arguments[2], said, sizeof said);
  socklen_t length = parse_address(arguments[0], arguments[1], &at);
  int fd = arguments[0][0] == '/' ? connect_local(arguments[0]) : socket(at.ss_family, SOCK_STREAM, 0);
  if (fd < 0 || (arguments[0][0] != '/' && connect(fd, (struct sockaddr *)&at, length) != 0)) return -1;
  if (send(fd, said, bytes, MSG_NOSIGNAL) < 0) return -1;
  size_t heard = 0;
  for (struct pollfd wait = {.fd = fd, .events = POLLIN}; poll(&wait, 1, PATIENCE_MS) > 0;) {
    ssize_t got = recv(fd, piece, sizeof piece, 0);
    if (got <= 0) break;
    fwrite(piece, 1, (size_t)got, found);
    heard += (size_t)got;
  }
  return heard > 0 ? 0 : (errno = ECONNRESET, -1);
}

// heard PATH TEXT: says the text and tells how many bytes come back until the end.
static int heard(int count, char **arguments) {
  (void)count;
  char piece[1024];
  size_t bytes = 0;
  int fd = say_locally(arguments[0], arguments[1]);
  if (fd < 0) return -1;
  for (struct pollfd wait = {.fd = fd, .events = POLLIN}; poll(&wait, 1, PATIENCE_MS) > 0;) {
    ssize_t got = recv(fd, piece, sizeof piece, 0);
    if (got <= 0) break;
    bytes += (size_t)got;
  }
  return fprintf(found, "%zu", bytes) > 0 ? 0 : -1;
}

// Whether the peer ended the connection; what it said is left out of account.
static bool is_over(int fd) {
  char piece[1024];
  ssize_t got;
  while ((got = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) > 0) {}
  return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

// outlast PATH TEXT...: says each on a connection of its own, and more on those whose text ends with an x; names those that are not ended.
static int outlast(int count, char **arguments) {
  enum { MOST = 8, STEP_MS = 50 };
  int fds[MOST], texts = count - 1, over = 0;
  if (texts > MOST) return errno = E2BIG, -1;
  for (int index = 0; index < texts; index++)
    if ((fds[index] = say_locally(arguments[0], arguments[1 + index])) < 0) return -1;
  for (int waited = 0; waited < PATIENCE_MS && over < texts; waited += STEP_MS) {
    poll(NULL, 0, STEP_MS);
    for (int index = 0; index < texts; index++) {
      const char *text = arguments[1 + index];
      if (fds[index] < 0) continue;
      if (text[strlen(text) - 1] == 'x') send(fds[index], "x", 1, MSG_NOSIGNAL);
      if (!is_over(fds[index])) continue;
      close(fds[index]);
      fds[index] = -1;
      over++;
    }
  }
  for (int index = 0; index < texts; index++)
    if (fds[index] >= 0) fprintf(found, "%d goes on ", index + 1);
  return 0;
}

// held PATH COUNT TEXT: says the text on so many connections at once, and tells how many are answered with 200 and not ended.
static int held(int count, char **arguments) {
  (void)count;
  enum { MOST = 64 };
  int fds[MOST], wanted = atoi(arguments[1]), answered = 0;
  char piece[64];
  if (wanted > MOST) return errno = E2BIG, -1;
  // One that is refused may be ended before all was said to it.
  for (int index = 0; index < wanted; index++) fds[index] = say_locally(arguments[0], arguments[2]);
  for (int index = 0; index < wanted; index++) {
    struct pollfd wait = {.fd = fds[index], .events = POLLIN};
    if (fds[index] < 0 || poll(&wait, 1, PATIENCE_MS) <= 0) continue;
    ssize_t got = recv(fds[index], piece, sizeof piece - 1, 0);
    if (got <= 0) continue;
    piece[got] = '\0';
    answered += strstr(piece, " 200 ") != NULL;
  }
  return fprintf(found, "%d", answered) > 0 ? 0 : -1;
}

const struct attempt door_attempts[] = {
    {"exchange", 3, exchange}, {"heard", 2, heard}, {"outlast", 2, outlast}, {"held", 3, held}, {NULL, 0, NULL},
};
