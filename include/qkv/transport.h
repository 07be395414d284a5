/* The interface of a transport plugin: messages between the processes that train one run. C99.
 *
 * A plugin is a shared library that exports
 *
 *   const qkv_transport *qkv_transport_1(void);
 *
 * The number is the version of this interface; a later version gets another name. Each process, called a rank, loads
 * the plugin. One thread makes all calls.
 *
 * Messages from one rank to another that have tag 0 are received in the order in which they were sent, and so are those
 * with any other tag. A message with tag 0 does not wait for messages with other tags. A receive names the exact size
 * of its message, at most QKV_MOST_MESSAGE_BYTES. Memory belongs to the plugin from `send` or `receive` until `poll`
 * reports that the request has ended, or until `close`.
 */
#ifndef QKV_TRANSPORT_H
#define QKV_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_MOST_MESSAGE_BYTES (16 * 1024 * 1024)

/* Functions that return int return 0 for success and -1 for an error, unless stated otherwise. */
typedef struct {
  /* Returns the name and version of the implementation, such as "Open MPI 4.1.4". May be called before `open`. */
  const char *(*name)(void);
  /* Connects the ranks. Sets the number of this one, 0 to size - 1, and how many there are. Called once. */
  int (*open)(int *rank, int *size);
  /* Begins to send n bytes, or to receive them. Returns at once and sets a number for the request, which is not used
   * by another request that has not ended. */
  int (*send)(const void *bytes, size_t n, int to, int tag, int64_t *request);
  int (*receive)(void *bytes, size_t n, int from, int tag, int64_t *request);
  /* Stores at most `most` requests that have ended and returns how many, or -1. Never blocks. Messages make progress
   * in this call only. */
  int (*poll)(int64_t *done, int most);
  /* Returns the last error in one line. */
  const char *(*error)(void);
  /* Returns the rank that the last error is about if it was lost, for instance because its process ended; otherwise -1.
   * The others can still be reached then, and each lost rank is reported once. */
  int (*lost)(void);
  /* Ends the processes of all ranks, this one last and with this exit status. Does not return. */
  void (*abort)(int status);
  /* Disconnects. Requests that have not ended are dropped. */
  int (*close)(void);
} qkv_transport;

#ifdef __cplusplus
}
#endif

#endif
