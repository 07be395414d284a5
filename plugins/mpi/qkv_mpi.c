/* The transport plugin qkv_mpi: messages by MPI, which carries bytes only. It adds no numbers, because the order of a
 * sum is left to the implementation there. To build it for the MPI of a cluster, in the root of the repository:
 *   mpicc -std=c99 -O2 -shared -fPIC -I include -o libqkv_mpi.so plugins/mpi/qkv_mpi.c
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qkv/transport.h"

enum { FAREWELL_MILLISECONDS = 30000, SEND_MILLISECONDS = 1000, OUTPUT_MILLISECONDS = 500, ABORT_SECONDS = 10 };

/* A request of the caller. Its MPI_Request has the same index in `handles`. */
struct request {
  int64_t number;
  size_t size; /* bytes */
  int peer, tag, receives;
};

/* `used` requests are under way. Of those in `ended`, the numbers from `reported` on have not been reported. */
static struct request *requests;
static MPI_Request *handles;
static MPI_Status *statuses;
static int *indices;
static int64_t *ended;
static int used, room, ended_count, reported;
static int64_t last_number;

static int own_rank, rank_count;
static int failed; /* an error was returned */
static char last_error[MPI_MAX_ERROR_STRING + 100];

static int set_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  for (char *c = last_error; *c; c++)
    if (*c < ' ' && *c >= 0) *c = ' ';
  failed = 1;
  return -1;
}

static int set_mpi_error(const char *function, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) snprintf(text, sizeof text, "error %d", code);
  return set_error("%s: %s", function, text);
}

static const char *error(void) { return last_error; }

/* MPI ends the whole job if it notices that a process has ended. */
static int lost(void) { return -1; }

/* Returns the first part of a text such as "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\n...", without the
 * word "Version:". */
static const char *name(void) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "MPI";
  text[strcspn(text, ",\r\n")] = '\0';
  char *const word = strstr(text, " Version:\t");
  if (word) memmove(word + 1, word + 10, strlen(word + 10) + 1);
  return text;
}

/* Open MPI asks for the data of a large message by another one. On one TCP connection, this waits behind the data of the
 * opposite direction, which doubles the time of an exchange (bench/cluster_exchange.py). Other implementations ignore
 * the variable. */
static void use_two_connections(void) { setenv("OMPI_MCA_btl_tcp_links", "2", 0); }

static int open_ranks(int *rank, int *size) {
  int before = 0, provided = 0;
  MPI_Initialized(&before);
  if (before) return set_error("MPI was initialized before; it can be used once by a process");
  use_two_connections();
  const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  if (code != MPI_SUCCESS) return set_mpi_error("MPI_Init_thread", code);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  *rank = own_rank;
  *size = rank_count;
  if (provided >= MPI_THREAD_FUNNELED) return 0;
  return set_error("MPI was built without threads; MPI_THREAD_FUNNELED is needed");
}

static int resize(void **array, size_t size) {
  void *const larger = realloc(*array, (size_t)room * size);
  if (larger) *array = larger;
  return larger != NULL;
}

static int make_room(void) {
  if (used < room) return 0;
  room = room ? 2 * room : 256;
  if (resize((void **)&requests, sizeof *requests) && resize((void **)&handles, sizeof *handles) &&
      resize((void **)&statuses, sizeof *statuses) && resize((void **)&indices, sizeof *indices) &&
      resize((void **)&ended, sizeof *ended))
    return 0;
  room = used;
  return set_error("no memory for %d requests", used + 1);
}

static int begin(int receives, void *bytes, size_t n, int peer, int tag, int64_t *number) {
  if (n > QKV_MOST_MESSAGE_BYTES)
    return set_error("a message has %zu bytes; at most %d are accepted", n, QKV_MOST_MESSAGE_BYTES);
  if (peer < 0 || peer >= rank_count || peer == own_rank)
    return set_error("rank %d cannot exchange messages with rank %d of %d", own_rank, peer, rank_count);
  if (make_room() != 0) return -1;
  const int code = receives ? MPI_Irecv(bytes, (int)n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &handles[used])
                            : MPI_Isend(bytes, (int)n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &handles[used]);
  if (code != MPI_SUCCESS) return set_mpi_error(receives ? "MPI_Irecv" : "MPI_Isend", code);
  *number = ++last_number;
  requests[used++] = (struct request){last_number, n, peer, tag, receives};
  return 0;
}

static int begin_send(const void *bytes, size_t n, int to, int tag, int64_t *number) {
  return begin(0, (void *)bytes, n, to, tag, number);
}

static int begin_receive(void *bytes, size_t n, int from, int tag, int64_t *number) {
  return begin(1, bytes, n, from, tag, number);
}

static int check_size(const struct request *r, const MPI_Status *status) {
  int count = 0;
  if (!r->receives || (MPI_Get_count(status, MPI_BYTE, &count) == MPI_SUCCESS && (size_t)count == r->size)) return 0;
  return set_error("rank %d sent a message of %d bytes with tag %d; expected %zu bytes", r->peer, count, r->tag,
                   r->size);
}

/* Drops the requests that have ended, whose handles MPI has set to null. */
static void drop_ended(void) {
  int kept = 0;
  for (int i = 0; i < used; i++) {
    if (handles[i] == MPI_REQUEST_NULL) continue;
    handles[kept] = handles[i];
    requests[kept++] = requests[i];
  }
  used = kept;
}

/* Moves requests that have ended to `ended`, all of whose numbers were reported. */
static int test_requests(void) {
  int count = 0;
  reported = ended_count = 0;
  const int code = MPI_Testsome(used, handles, &count, indices, statuses);
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return set_mpi_error("MPI_Testsome", code);
  for (int i = 0; i < count && count != MPI_UNDEFINED; i++) {
    const struct request *const r = &requests[indices[i]];
    if (code == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR != MPI_SUCCESS)
      return set_mpi_error(r->receives ? "MPI_Irecv" : "MPI_Isend", statuses[i].MPI_ERROR);
    if (check_size(r, &statuses[i]) != 0) return -1;
    ended[ended_count++] = r->number;
  }
  drop_ended();
  return 0;
}

static int poll_requests(int64_t *done, int most) {
  if (reported == ended_count && test_requests() != 0) return -1;
  int count = 0;
  while (count < most && reported < ended_count) done[count++] = ended[reported++];
  return count;
}

static void rest(int milliseconds) {
  const struct timespec time = {0, milliseconds * 1000000L};
  nanosleep(&time, NULL);
}

/* Returns whether all ranks have come here, and all of them `clean`. Does not wait for ever. A pause of this process
 * does not count. */
static int is_clean_on_all_ranks(int clean) {
  int all_clean = 0, complete = 0;
  MPI_Request request;
  if (MPI_Iallreduce(&clean, &all_clean, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request) != MPI_SUCCESS) return 0;
  for (int passed = 0; passed < FAREWELL_MILLISECONDS && !complete; passed++) {
    MPI_Status status;
    if (MPI_Test(&request, &complete, &status) != MPI_SUCCESS) return 0;
    if (!complete) rest(1);
  }
  return complete && all_clean;
}

/* Memory of receives is not written any more after this. Signs of life are received until the end. */
static void cancel_receives(void) {
  for (int i = 0; i < used; i++)
    if (requests[i].receives && MPI_Cancel(&handles[i]) == MPI_SUCCESS) MPI_Wait(&handles[i], MPI_STATUS_IGNORE);
  drop_ended();
}

static int is_sending(void) {
  for (int i = 0; i < used; i++)
    if (!requests[i].receives) return 1;
  return 0;
}

/* Returns whether all messages of this rank were sent. Does not wait for ever. */
static int finish_sends(void) {
  for (int passed = 0; passed < SEND_MILLISECONDS && is_sending(); passed++) {
    if (test_requests() != 0) return 0;
    if (is_sending()) rest(1);
  }
  return !is_sending();
}

/* MPI_Finalize waits for all ranks and all messages that are sent, so it is called only if none can be missing.
 * Otherwise the process is to exit without it, and launchers kill those that have not done so yet. */
static int close_ranks(void) {
  if (rank_count == 0) return 0;
  const int clean = is_clean_on_all_ranks(!failed && finish_sends());
  cancel_receives();
  return clean && MPI_Finalize() != MPI_SUCCESS ? set_error("MPI_Finalize failed") : 0;
}

/* Launchers may drop output that they have not read yet. If MPI does not end this process in time, a signal does. */
static void abort_ranks(int status) {
  signal(SIGALRM, SIG_DFL);
  alarm(ABORT_SECONDS);
  rest(OUTPUT_MILLISECONDS);
  if (rank_count > 0) MPI_Abort(MPI_COMM_WORLD, status);
  _exit(status);
}

__attribute__((visibility("default"))) const qkv_transport *qkv_transport_1(void);

const qkv_transport *qkv_transport_1(void) {
  static const qkv_transport functions = {name,  open_ranks, begin_send,  begin_receive, poll_requests,
                                          error, lost,       abort_ranks, close_ranks};
  return &functions;
}
