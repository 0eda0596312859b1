// Packets that the kernel turned away, with whatever a server put into them, and the notices that they
// become.
#include "../init/refusals.c"
#include "../init/notices.c"

#include "harness.h"

void fuzz_refusals(void) {
  if (input.left > PACKET_BYTES) return;
  door = 1 << 20;
  held_bytes = lines_this_second = dropped = 0;
  size_t length = input.left;
  const unsigned char *packet = exact(input.at, length);
  tell_packet(packet, length);
}
