// Notices to the door: one line for each refused attempt, at a bounded rate, never waited for.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

enum { LINES_A_SECOND = 100, HELD_BYTES = 16 << 10, LINE_BYTES = 512 };

static int door = -1;
static char held[HELD_BYTES];
static size_t held_bytes;
static int64_t second_began_ms;
static unsigned lines_this_second;
static unsigned long long dropped;

void open_notices(const char *path) {
  door = dial_door(path);
  if (door < 0) die("egress", path, errno);
  held_bytes = (size_t)snprintf(held, sizeof held, "SP1 notices\n");
}

static void close_door(void) {
  close(door);
  door = -1;
  held_bytes = 0;
}

static void flush_notices(void) {
  if (door < 0) return;
  ssize_t sent = held_bytes == 0 ? 0 : send(door, held, held_bytes, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    close_door();
    return;
  }
  if (sent > 0) {
    held_bytes -= (size_t)sent;
    memmove(held, held + sent, held_bytes);
  }
  change_watch(door, held_bytes > 0 ? EPOLLOUT : 0, SOURCE_NOTICES, 0);
}

// The first line goes now: a relay that waits has not woken for it, and keeps the less code in memory.
void watch_notices(void) {
  watch(door, EPOLLOUT, SOURCE_NOTICES, 0);
  flush_notices();
}

static bool has_room(size_t length) {
  int64_t now = now_ms();
  if (now - second_began_ms >= 1000) {
    second_began_ms = now;
    lines_this_second = 0;
  }
  return lines_this_second < LINES_A_SECOND && length <= sizeof held - held_bytes;
}

static bool append(const char *line, size_t length) {
  if (!has_room(length)) return false;
  memcpy(held + held_bytes, line, length);
  held_bytes += length;
  lines_this_second++;
  return true;
}

static void tell_dropped(void) {
  char line[64];
  if (dropped == 0) return;
  int length = snprintf(line, sizeof line, "dropped %llu\n", dropped);
  if (append(line, (size_t)length)) dropped = 0;
}

void notice(const char *format, ...) {
  char line[LINE_BYTES];
  va_list arguments;
  if (door < 0) return;
  tell_dropped();
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  line[length] = '\n';
  if (!append(line, (size_t)length + 1)) dropped++;
  flush_notices();
}

// What was dropped is told when there is room again, though nothing more is refused.
int notices_timeout_ms(void) {
  if (door < 0 || dropped == 0) return -1;
  tell_dropped();
  flush_notices();
  return dropped == 0 ? -1 : 1000;
}

void serve_notices(uint32_t events) {
  if (door < 0) return;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0)
    close_door();
  else
    flush_notices();
}
