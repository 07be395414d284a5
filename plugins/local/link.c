/* A link that is slow or fails, for tests: QKV_LOCAL_DELAY, QKV_LOCAL_BANDWIDTH and QKV_LOCAL_FAULT of qkv_local.c. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "local.h"

enum { MOST_SAVED_MICROSECONDS = 5000 }; /* of a link that was idle */

static int delay, bandwidth; /* milliseconds; Mbit/s, which are bits per microsecond; 0: none */
static double bits;          /* that may be sent now */
static int64_t counted_at;   /* until when `bits` were counted */
static int fault;            /* signal; 0: none */
static long fault_message;
static long messages; /* that were sent */

int64_t microseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000000 + t.tv_nsec / 1000;
}

int read_link(void) {
  const char *const text = getenv("QKV_LOCAL_FAULT");
  char kind[5] = "", rest = 0;
  if (read_number("QKV_LOCAL_DELAY", 0, 60000, 0, &delay) != 0 ||
      read_number("QKV_LOCAL_BANDWIDTH", 0, 1000000, 0, &bandwidth) != 0)
    return -1;
  if (!text || !*text) return 0;
  const int parts = sscanf(text, "%4[a-z]:%9ld%c", kind, &fault_message, &rest);
  fault = strcmp(kind, "kill") == 0 ? SIGKILL : strcmp(kind, "stop") == 0 ? SIGSTOP : 0;
  if (parts != 2 || fault == 0 || fault_message < 1)
    return set_error(-1, "QKV_LOCAL_FAULT must be kill:N or stop:N with the number of a message (is \"%.40s\")", text);
  return 0;
}

int64_t start_on_link(int tag) {
  if (tag != 0 && ++messages == fault_message) raise(fault);
  return delay == 0 ? 0 : microseconds() + delay * (int64_t)1000;
}

size_t room_on_link(size_t n) {
  if (bandwidth == 0) return n;
  const int64_t now = microseconds(), passed = now - counted_at;
  bits += (double)bandwidth * (double)(passed < MOST_SAVED_MICROSECONDS ? passed : MOST_SAVED_MICROSECONDS);
  counted_at = now;
  const size_t room = bits < 8 ? 0 : (size_t)(bits / 8);
  return n < room ? n : room;
}

void use_link(size_t n) { bits -= bandwidth == 0 ? 0 : 8.0 * (double)n; }
