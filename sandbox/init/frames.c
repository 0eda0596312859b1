// Frames of the control channel, in a fixed arena: no allocation can fail later or keep a secret.
#include "frames.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init.h"

enum { ARENA_BYTES = 8 << 20, SEND_MAX_BYTES = 32 << 10 };

// Zero pages until touched: a launch uses a few of them.
static _Alignas(4096) unsigned char arena[ARENA_BYTES];
static size_t arena_used;

void *arena_take(size_t bytes) {
  size_t rounded = (bytes + 15) & ~(size_t)15;
  if (rounded < bytes || rounded > ARENA_BYTES - arena_used)
    refuse("control channel", "arena", "all frames together are longer than 8 MiB");
  void *start = arena + arena_used;
  arena_used += rounded;
  return start;
}

void arena_wipe(void) {
  explicit_bzero(arena, arena_used);
  // Refused, the empty pages stay: nothing but memory is lost.
  (void)madvise(arena, arena_used, MADV_DONTNEED);
  arena_used = 0;
}

// Looked at and still in the channel: a launch is hundreds of short frames, and what follows them may be for somebody else.
static unsigned char ahead[4096];
static size_t ahead_bytes, ahead_read;

static size_t receive(void *bytes, size_t length, int flags) {
  for (;;) {
    ssize_t got = recv(FD_CONTROL, bytes, length, flags);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) die("control channel", "receive", errno);
    if (got == 0) refuse("control channel", "gate", "the supervisor went away before it said go");
    return (size_t)got;
  }
}

void frames_settle(void) {
  // Over what it takes off: the same bytes.
  for (size_t taken = 0; taken < ahead_read;) taken += receive(ahead + taken, ahead_read - taken, 0);
  explicit_bzero(ahead, ahead_bytes);
  ahead_bytes = ahead_read = 0;
}

static void read_exactly(void *bytes, size_t length) {
  unsigned char *at = bytes;
  while (length > 0) {
    if (ahead_read == ahead_bytes) {
      frames_settle();
      ahead_bytes = receive(ahead, sizeof ahead, MSG_PEEK);
    }
    size_t some = ahead_bytes - ahead_read < length ? ahead_bytes - ahead_read : length;
    memcpy(at, ahead + ahead_read, some);
    ahead_read += some;
    at += some;
    length -= some;
  }
}

struct frame frame_read(void) {
  unsigned char head[FRAME_HEAD_BYTES];
  read_exactly(head, sizeof head);
  uint32_t length = get_u32(head + 1);
  if (length > FRAME_MAX_BYTES) refuse("control channel", "frame", "longer than 1 MiB");
  unsigned char *payload = arena_take(length);
  read_exactly(payload, length);
  return (struct frame){.type = (char)head[0], .at = payload, .left = length};
}

const char *take_text(struct frame *frame) {
  const unsigned char *end = frame->left == 0 ? NULL : memchr(frame->at, 0, frame->left);
  if (end == NULL) refuse("control channel", (char[]){frame->type, 0}, "a string without its NUL");
  const char *text = (const char *)frame->at;
  frame->left -= (size_t)(end + 1 - frame->at);
  frame->at = end + 1;
  return text;
}

static const unsigned char *take_bytes(struct frame *frame, size_t bytes) {
  if (frame->left < bytes) refuse("control channel", (char[]){frame->type, 0}, "payload too short");
  const unsigned char *at = frame->at;
  frame->at += bytes;
  frame->left -= bytes;
  return at;
}

uint32_t take_u32(struct frame *frame) { return get_u32(take_bytes(frame, 4)); }

uint64_t take_u64(struct frame *frame) {
  const unsigned char *at = take_bytes(frame, 8);
  return (uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

const void *take_rest(struct frame *frame, size_t *bytes) {
  *bytes = frame->left;
  return take_bytes(frame, frame->left);
}

void take_end(const struct frame *frame) {
  if (frame->left != 0) refuse("control channel", (char[]){frame->type, 0}, "payload too long");
}

void frame_out_of_order(const struct frame *frame) {
  refuse("control channel", (char[]){frame->type, 0}, "frame unknown or out of order");
}

uint32_t get_u32(const unsigned char *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

void put_u32(unsigned char *at, uint32_t value) {
  for (int byte = 0; byte < 4; byte++) at[byte] = (unsigned char)(value >> (8 * byte));
}

void put_u64(unsigned char *at, uint64_t value) {
  put_u32(at, (uint32_t)value);
  put_u32(at + 4, (uint32_t)(value >> 32));
}

bool frame_send(char type, const void *payload, size_t length) {
  static unsigned char out[SEND_MAX_BYTES];
  if (length > sizeof out - FRAME_HEAD_BYTES) return false;
  out[0] = (unsigned char)type;
  put_u32(out + 1, (uint32_t)length);
  if (length > 0) memcpy(out + FRAME_HEAD_BYTES, payload, length);
  size_t bytes = FRAME_HEAD_BYTES + length;
  return send(FD_CONTROL, out, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}
