// What PID 1 and the launcher's child say to each other, over FD_COVERS, of the covers over /proc.
#ifndef SALLYPORT_COVERS_H
#define SALLYPORT_COVERS_H

#include <stdint.h>

// The question is one byte, and with it the namespaces to enter: of users, then of mounts.
enum { NAMESPACES = 2 };

// The answer: no error, or the errno of the first cover that failed, and its path.
struct covered {
  uint32_t error;
  char object[128];
};

#endif
