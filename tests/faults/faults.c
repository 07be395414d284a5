// A library for LD_PRELOAD that lets one call to the system fail, to see how a program ends then. sweep.py uses it.
//
//   QKV_FAULT_CALL    kind of call that fails: one of kNames
//   QKV_FAULT_AT      number of the call, from 1
//   QKV_FAULT_ERROR   number of the error, or "short": reads and writes transfer half of the bytes
//   QKV_FAULT_REPEAT  1: all later calls fail too
//   QKV_FAULT_PATH    only calls on files below this folder count
//   QKV_FAULT_BYTES   only allocations of at least this size count
//   QKV_FAULT_REPORT  file that gets the number of calls of each kind at the end
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// clang-format off
#define KINDS(X) \
  X(write) X(read) X(fsync) X(rename) X(open) X(mkdir) X(unlink) X(truncate) X(flock) \
  X(mmap) X(mprotect) X(alloc) X(thread)
// clang-format on
#define VALUE(name) k_##name,
#define NAME(name) #name,
enum Kind { KINDS(VALUE) kKinds };
static const char* const kNames[] = {KINDS(NAME)};

static atomic_long counts[kKinds];
static int wanted = -1, error_number, is_short, repeats;
static long at;
static size_t least_bytes = SIZE_MAX;
static const char* folder;

static __attribute__((constructor)) void begin(void) {
  const char *call = getenv("QKV_FAULT_CALL"), *error = getenv("QKV_FAULT_ERROR"), *bytes = getenv("QKV_FAULT_BYTES");
  for (int kind = 0; call && kind < kKinds; kind++)
    if (strcmp(call, kNames[kind]) == 0) wanted = kind;
  at = getenv("QKV_FAULT_AT") ? atol(getenv("QKV_FAULT_AT")) : 0;
  is_short = error && strcmp(error, "short") == 0;
  error_number = error ? atoi(error) : 0;
  repeats = getenv("QKV_FAULT_REPEAT") != NULL;
  folder = getenv("QKV_FAULT_PATH");
  if (bytes) least_bytes = (size_t)atol(bytes);
}

static __attribute__((destructor)) void report(void) {
  const char* path = getenv("QKV_FAULT_REPORT");
  const int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
  if (file < 0) return;
  for (int kind = 0; kind < kKinds; kind++) dprintf(file, "%s %ld\n", kNames[kind], counts[kind]);
  close(file);
}

static int is_watched(const char* path) { return folder && strncmp(path, folder, strlen(folder)) == 0; }

static int is_watched_file(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return is_watched(path);
}

static int is_watched_at(int directory, const char* path) {
  return path[0] == '/' || directory == AT_FDCWD ? is_watched(path) : is_watched_file(directory);
}

// Counts a call. Returns whether it is one to disturb.
static int is_next(enum Kind kind) {
  const long number = ++counts[kind];
  return (int)kind == wanted && (number == at || (repeats && number > at));
}

static int fails(enum Kind kind) {
  if (!is_next(kind)) return 0;
  errno = error_number;
  return 1;
}

// Counts a transfer, and halves the size of one that is to be short. Returns whether it fails.
static int transfer_fails(enum Kind kind, int file, size_t* size) {
  if (!is_watched_file(file) || !is_next(kind)) return 0;
  errno = error_number;
  if (is_short) *size = (*size + 1) / 2;
  return !is_short;
}

ssize_t write(int file, const void* bytes, size_t size) {
  return transfer_fails(k_write, file, &size) ? -1 : syscall(SYS_write, file, bytes, size);
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  return transfer_fails(k_write, file, &size) ? -1 : syscall(SYS_pwrite64, file, bytes, size, offset);
}
ssize_t writev(int file, const struct iovec* parts, int count) {
  size_t size = (size_t)count;
  return transfer_fails(k_write, file, &size) ? -1 : syscall(SYS_writev, file, parts, size);
}
ssize_t read(int file, void* bytes, size_t size) {
  return transfer_fails(k_read, file, &size) ? -1 : syscall(SYS_read, file, bytes, size);
}
ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  return transfer_fails(k_read, file, &size) ? -1 : syscall(SYS_pread64, file, bytes, size, offset);
}
ssize_t pwrite64(int, const void*, size_t, off_t) __attribute__((alias("pwrite")));
ssize_t pread64(int, void*, size_t, off_t) __attribute__((alias("pread")));

int fsync(int file) { return is_watched_file(file) && fails(k_fsync) ? -1 : (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { return is_watched_file(file) && fails(k_fsync) ? -1 : (int)syscall(SYS_fdatasync, file); }
int ftruncate(int file, off_t size) {
  return is_watched_file(file) && fails(k_truncate) ? -1 : (int)syscall(SYS_ftruncate, file, size);
}
int ftruncate64(int, off_t) __attribute__((alias("ftruncate")));
int flock(int file, int operation) {
  return is_watched_file(file) && fails(k_flock) ? -1 : (int)syscall(SYS_flock, file, operation);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  if (is_watched_at(to_folder, to) && fails(k_rename)) return -1;
  return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}
int rename(const char* from, const char* to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

// Counts an opening. fopen and directories are not interrupted: on the files of a run, nothing can do that.
static int opening_fails(int interruptible) { return !(error_number == EINTR && !interruptible) && fails(k_open); }

static int takes_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (is_watched_at(directory, path) && opening_fails(!(flags & O_DIRECTORY))) return -1;
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return openat(AT_FDCWD, path, flags, mode);
}
int open64(const char*, int, ...) __attribute__((alias("open")));
int openat64(int, const char*, int, ...) __attribute__((alias("openat")));
FILE* fopen(const char* path, const char* mode) {
  FILE* (*const next)(const char*, const char*) = (FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, "fopen");
  return is_watched(path) && opening_fails(0) ? NULL : next(path, mode);
}
FILE* fopen64(const char*, const char*) __attribute__((alias("fopen")));
DIR* opendir(const char* path) {
  DIR* (*const next)(const char*) = (DIR * (*)(const char*)) dlsym(RTLD_NEXT, "opendir");
  return is_watched(path) && opening_fails(0) ? NULL : next(path);
}

int mkdir(const char* path, mode_t mode) {
  return is_watched(path) && fails(k_mkdir) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
int unlinkat(int directory, const char* path, int flags) {
  return is_watched_at(directory, path) && fails(k_unlink) ? -1 : (int)syscall(SYS_unlinkat, directory, path, flags);
}
int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) {
  const int result = unlink(path);
  return result != 0 && errno == EISDIR ? rmdir(path) : result;
}

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  const int counted = file >= 0 ? is_watched_file(file) : size >= least_bytes;
  if (counted && fails(k_mmap)) return MAP_FAILED;
  return (void*)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}
void* mmap64(void*, size_t, int, int, int, off_t) __attribute__((alias("mmap")));
int mprotect(void* address, size_t size, int protection) {
  return size >= least_bytes && fails(k_mprotect) ? -1 : (int)syscall(SYS_mprotect, address, size, protection);
}

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static int alloc_fails(size_t size) { return size >= least_bytes && fails(k_alloc); }

void* malloc(size_t size) { return alloc_fails(size) ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return alloc_fails(count * size) ? NULL : __libc_calloc(count, size); }
void* realloc(void* block, size_t size) { return alloc_fails(size) ? NULL : __libc_realloc(block, size); }
void* memalign(size_t alignment, size_t size) { return alloc_fails(size) ? NULL : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t, size_t) __attribute__((alias("memalign")));
int posix_memalign(void** block, size_t alignment, size_t size) {
  if (alloc_fails(size)) return ENOMEM;
  *block = __libc_memalign(alignment, size);
  return *block ? 0 : ENOMEM;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  Create* const next = (Create*)dlsym(RTLD_NEXT, "pthread_create");
  return fails(k_thread) ? error_number : next(thread, attributes, start, argument);
}
