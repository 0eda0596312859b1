// What a process that has only one thing left to do need not keep in memory.
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "init.h"

extern const ElfW(Ehdr) __ehdr_start;

// The code and the constants that a start took come from the binary's file, and from there they come again where they are
// wanted once more. Never what may be written to: that is nowhere else.
void let_go_of_code(void) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), head = (uintptr_t)&__ehdr_start, moved = 0;
  const ElfW(Phdr) *parts = (const ElfW(Phdr) *)(head + __ehdr_start.e_phoff);
  for (int index = 0; index < __ehdr_start.e_phnum; index++) {
    const ElfW(Phdr) *part = &parts[index];
    if (part->p_type != PT_LOAD) continue;
    if (part->p_offset == 0) moved = head - part->p_vaddr;
    if ((part->p_flags & PF_W) != 0) continue;
    uintptr_t from = moved + part->p_vaddr, to = from + part->p_filesz;
    // Refused, it stays where it is: nothing but memory is lost.
    (void)madvise((void *)(from & ~(page - 1)), to - (from & ~(page - 1)), MADV_DONTNEED);
  }
}
