// For streams of frames: changes the payload of one and says its new length, which chance would hardly guess.
#include <string.h>

#include "../init/frames.h"
#include "harness.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t most, unsigned seed);

enum { PAYLOAD_MAX = 4096 };

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t most, unsigned seed) {
  static uint8_t payload[PAYLOAD_MAX];
  size_t at = 0, starts[64], count = 0;
  while (is_framed && count < 64 && length - at >= FRAME_HEAD_BYTES &&
         get_u32(bytes + at + 1) <= length - at - FRAME_HEAD_BYTES) {
    starts[count++] = at;
    at += FRAME_HEAD_BYTES + get_u32(bytes + at + 1);
  }
  if (count == 0 || seed % 4 == 0) return LLVMFuzzerMutate(bytes, length, most);
  at = starts[seed / 4 % count];
  size_t held = get_u32(bytes + at + 1), behind = at + FRAME_HEAD_BYTES + held, room = most - (length - held);
  if (room == 0 || held > PAYLOAD_MAX) return LLVMFuzzerMutate(bytes, length, most);
  memcpy(payload, bytes + at + FRAME_HEAD_BYTES, held);
  size_t made = LLVMFuzzerMutate(payload, held, room < PAYLOAD_MAX ? room : PAYLOAD_MAX);
  memmove(bytes + at + FRAME_HEAD_BYTES + made, bytes + behind, length - behind);
  memcpy(bytes + at + FRAME_HEAD_BYTES, payload, made);
  put_u32(bytes + at + 1, (uint32_t)made);
  return length - held + made;
}
