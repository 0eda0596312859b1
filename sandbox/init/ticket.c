// Executes a program that can never execute another: a seccomp filter that lets through one call only.
//
// A filter can't count, and it must stand before the exec that is to be the last. But it can compare
// arguments, and execveat takes three pointers. The path, the argv array and the environment array are put at
// addresses drawn from getrandom, and the filter allows execveat with exactly these three, AT_FDCWD and no
// flags. The addresses are the ticket: 44 random bits each (35 where the address space has 39 bits), 105 bits
// and more together. The exec destroys the address space in which they meant anything; nobody else ever sees
// them, since PID 1 and this child are non-dumpable and an unprivileged process can't read a filter back; and
// a wrong guess is EPERM.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"
#include "sandbox.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the ticket's filter is written for x86-64 and arm64"
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
// x32 calls carry this bit under the x86-64 architecture; arm64 has no such numbers.
#define X32_BIT 0x40000000U

// The largest page size of these architectures: a multiple of it is a page border everywhere.
enum { PAGE_BYTES = 1 << 16, DRAWS = 64, WIDE_BITS = 47, NARROW_BITS = 38 };

static uint64_t draw(int bits) {
  uint64_t random;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) die("exec once", "getrandom", errno);
  return random & ((1ULL << bits) - 1);
}

// Copies to a random address that is a multiple of 8, in memory of its own.
static void *place(const void *bytes, size_t length) {
  const size_t size = length + PAGE_BYTES;
  for (int attempt = 0; attempt < DRAWS; attempt++) {
    // Wide first; the narrow draws are for kernels that give a process 39 bits.
    uint64_t address = draw(attempt % 2 == 0 ? WIDE_BITS : NARROW_BITS) & ~(uint64_t)7;
    void *page = (void *)(uintptr_t)(address & ~(uint64_t)(PAGE_BYTES - 1));
    void *got =
        mmap(page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == page) return memcpy((void *)(uintptr_t)address, bytes, length);
    if (got != MAP_FAILED) munmap(got, size);  // before Linux 4.17 the flag is a hint only
  }
  refuse("exec once", "mmap", "no free memory at a random address");
}

static size_t list_bytes(char *const list[]) {
  size_t count = 0;
  while (list[count] != NULL) count++;
  return (count + 1) * sizeof list[0];
}

#define WORD(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
// Gathers in X every bit in which a word differs. All words are compared before anything is decided: a filter
// that gave up at the first wrong one would tell by its time how much of a guess was right. Little endian: the
// low word comes first.
#define GATHER_WORD(offset, value)                                      \
  LOAD(offset), BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, (uint32_t)(value)), \
      BPF_STMT(BPF_ALU | BPF_OR | BPF_X, 0), BPF_STMT(BPF_MISC | BPF_TAX, 0)
#define GATHER_POINTER(number, value)                 \
  GATHER_WORD(WORD(args[number]), (uint64_t)(value)), \
      GATHER_WORD(WORD(args[number]) + 4, (uint64_t)(value) >> 32)
#define GATHER_INT(number, value) GATHER_WORD(WORD(args[number]), (value))

static void install_filter(const void *path, const void *argv, const void *env) {
  struct sock_filter filter[] = {
      // Another architecture numbers its calls otherwise: nothing of it runs.
      LOAD(WORD(arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0),
      RETURN(SECCOMP_RET_KILL_PROCESS),
      LOAD(WORD(nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
      RETURN(SECCOMP_RET_KILL_PROCESS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
      RETURN(SECCOMP_RET_ERRNO | EPERM),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 1, 0),
      RETURN(SECCOMP_RET_ALLOW),
      // The kernel reads dirfd and flags as 32-bit ints, the three pointers in full.
      BPF_STMT(BPF_LDX | BPF_IMM, 0),
      GATHER_INT(0, AT_FDCWD),
      GATHER_POINTER(1, (uintptr_t)path),
      GATHER_POINTER(2, (uintptr_t)argv),
      GATHER_POINTER(3, (uintptr_t)env),
      GATHER_INT(4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      RETURN(SECCOMP_RET_ALLOW),
      RETURN(SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) die("exec once", "seccomp", errno);
}

// Returns -1 with errno where the program could not be executed.
int exec_once(const char *program, char *const argv[], char *const env[]) {
  const char *path = place(program, strlen(program) + 1);
  char *const *placed_argv = place(argv, list_bytes(argv));
  char *const *placed_env = place(env, list_bytes(env));
  install_filter(path, placed_argv, placed_env);
  return (int)syscall(SYS_execveat, AT_FDCWD, path, placed_argv, placed_env, 0);
}
