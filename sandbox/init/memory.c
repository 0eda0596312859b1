// What a process that has only one thing left to do need not keep in memory.
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "init.h"

extern const char __executable_start[], etext[];

// The code that a start took comes from the binary's file, and from there it comes again where it is wanted once more.
// Never beyond `etext`: what lies there was written to since.
void let_go_of_code(void) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t from = ((uintptr_t)__executable_start + page - 1) & ~(page - 1), to = (uintptr_t)etext & ~(page - 1);
  // Refused, it stays where it is: nothing but memory is lost.
  (void)madvise((void *)from, to - from, MADV_DONTNEED);
}
