// Attempts at a door: what comes back from it, for how long it stands open, and for how many. Silence says nothing of a door: it is
// waited for until it ends the connection, and whoever waits for too long is late.
#include "probes.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/** Twice as long as any budget that is tried by waiting for its end. */
enum { OUTLASTED_MS = 3000 };

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

// exchange ADDRESS PORT TEXT [UNTIL], where an address may be the path of a socket: says the text and tells what comes back, up to
// where UNTIL is in it or the connection ends; ECONNRESET where that is before anything came.
static int exchange(int count, char **arguments) {
  struct sockaddr_storage at;
  char said[2048];
  static char heard[TEXT_BYTES];
  size_t bytes = unescape(arguments[2], said, sizeof said), length = 0;
  socklen_t size = parse_address(arguments[0], arguments[1], &at);
  int fd = arguments[0][0] == '/' ? connect_local(arguments[0]) : socket(at.ss_family, SOCK_STREAM, 0);
  if (fd < 0 || (arguments[0][0] != '/' && connect(fd, (struct sockaddr *)&at, size) != 0)) return -1;
  if (send(fd, said, bytes, MSG_NOSIGNAL) < 0) return -1;
  for (ssize_t got; length < sizeof heard && (got = recv(fd, heard + length, sizeof heard - length, 0)) > 0;) {
    length += (size_t)got;
    if (count > 3 && memmem(heard, length, arguments[3], strlen(arguments[3])) != NULL) break;
  }
  fwrite(heard, 1, length, found);
  return length > 0 ? 0 : (errno = ECONNRESET, -1);
}

// Takes everything up to the end of the connection, and returns how many bytes that were.
static size_t take_all(int fd) {
  char piece[1024];
  size_t bytes = 0;
  for (ssize_t got; (got = recv(fd, piece, sizeof piece, 0)) > 0;) bytes += (size_t)got;
  return bytes;
}

// heard PATH TEXT: says the text and tells how many bytes come back until the end.
static int heard(int count, char **arguments) {
  (void)count;
  int fd = say_locally(arguments[0], arguments[1]);
  return fd < 0 ? -1 : fprintf(found, "%zu", take_all(fd)) > 0 ? 0 : -1;
}

// Whether the peer ended the connection; what it said is left out of account.
static bool is_over(int fd) {
  char piece[1024];
  ssize_t got;
  while ((got = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) > 0) {}
  return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

// Whether whoever comes now is answered: those who came before have been seen to by then, and what was due for them was done.
static bool is_answered(const char *path, const char *text) {
  int fd = say_locally(path, text);
  bool is_it = fd >= 0 && take_all(fd) > 0;
  close(fd);
  return is_it;
}

// outlast PATH ANSWERED TEXT...: says each on a connection of its own, and more on those whose text ends with an x; names those that
// are not ended when somebody who came long after them has had an answer to the first text.
static int outlast(int count, char **arguments) {
  enum { MOST = 8, STEP_MS = 50 };
  char **texts = arguments + 2;
  int fds[MOST], wanted = count - 2, over = 0;
  if (wanted > MOST) return errno = E2BIG, -1;
  for (int index = 0; index < wanted; index++)
    if ((fds[index] = say_locally(arguments[0], texts[index])) < 0) return -1;
  bool is_known = is_answered(arguments[0], arguments[1]);
  for (int waited = 0; waited <= OUTLASTED_MS && over < wanted; waited += STEP_MS) {
    if (waited == OUTLASTED_MS) is_known &= is_answered(arguments[0], arguments[1]);
    poll(NULL, 0, STEP_MS);
    for (int index = 0; index < wanted; index++) {
      if (fds[index] < 0) continue;
      if (texts[index][strlen(texts[index]) - 1] == 'x') send(fds[index], "x", 1, MSG_NOSIGNAL);
      if (!is_over(fds[index])) continue;
      close(fds[index]);
      fds[index] = -1;
      over++;
    }
  }
  if (over < wanted && !is_known) return fputs("nobody else was answered meanwhile", found), errno = 0, -1;
  for (int index = 0; index < wanted; index++)
    if (fds[index] >= 0) fprintf(found, "%d goes on ", index + 1);
  return 0;
}

// held PATH COUNT TEXT: says the text on so many connections, and tells how many at most were answered with 200 and not ended at once.
static int held(int count, char **arguments) {
  (void)count;
  enum { MOST = 64 };
  int fds[MOST], wanted = atoi(arguments[1]), answered = 0, most = 0;
  char piece[64];
  if (wanted > MOST) return errno = E2BIG, -1;
  // One that is refused may be ended before all was said to it.
  for (int index = 0; index < wanted; index++) fds[index] = say_locally(arguments[0], arguments[2]);
  for (int index = 0; index < wanted; index++) {
    ssize_t got = fds[index] < 0 ? 0 : recv(fds[index], piece, sizeof piece - 1, 0);
    if (got <= 0) continue;
    piece[got] = '\0';
    if (strstr(piece, " 200 ") == NULL) continue;
    // Whose place it has was ended before it was answered.
    int left = 0;
    for (int other = 0; other < answered; other++)
      if (!is_over(fds[other])) fds[left++] = fds[other];
    fds[left++] = fds[index];
    answered = left;
    if (answered > most) most = answered;
  }
  return fprintf(found, "%d", most) > 0 ? 0 : -1;
}

const struct attempt door_attempts[] = {
    {"exchange", 3, exchange}, {"heard", 2, heard}, {"outlast", 3, outlast}, {"held", 3, held}, {NULL, 0, NULL},
};
