// The control channel: one byte of type, four of length (little endian), the payload.
#ifndef SALLYPORT_FRAMES_H
#define SALLYPORT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEAD_BYTES = 5, FRAME_MAX_BYTES = 1 << 20 };

struct frame {
  char type;
  // Payload not taken yet; each take_* moves on
  const unsigned char *at;
  size_t left;
};

// Reads the next frame; dies on the end of the stream, a long frame or a full arena.
struct frame frame_read(void);
// Takes what was read off the channel, and not a byte more: due before anybody else reads from it.
void frames_settle(void);
const char *take_text(struct frame *frame);
uint32_t take_u32(struct frame *frame);
uint64_t take_u64(struct frame *frame);
// What is left of the payload; its bytes are aligned where nothing was taken before.
const void *take_rest(struct frame *frame, size_t *bytes);
void take_end(const struct frame *frame);
// The frame is not one that may come now.
_Noreturn void frame_out_of_order(const struct frame *frame);

uint32_t get_u32(const unsigned char *at);
void put_u32(unsigned char *at, uint32_t value);
void put_u64(unsigned char *at, uint64_t value);

// Sends without ever blocking; false when the channel is lost or full, which is the same.
bool frame_send(char type, const void *payload, size_t length);

// Memory for what the frames carry: fixed, never freed, wiped when the server has its copy.
void *arena_take(size_t bytes);
void arena_wipe(void);

#endif
