#include "netrpc/devices/engine/uring_receiver.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "lrpc/detail/shim/system/restricted_ring.h"

namespace lrpc::netrpc {

namespace {
/// All operations that a ring needs (TIMEOUT_REMOVE changes a timer, ASYNC_CANCEL ends a receive); it refuses others.
constexpr std::array<std::uint8_t, 7> kOperations{IORING_OP_RECVMSG,     IORING_OP_SEND,    IORING_OP_SENDMSG,
                                                  IORING_OP_POLL_ADD,    IORING_OP_TIMEOUT, IORING_OP_TIMEOUT_REMOVE,
                                                  IORING_OP_ASYNC_CANCEL};
constexpr std::array<std::uint8_t, 1> kRegisters{IORING_REGISTER_FILES_UPDATE};
constexpr std::uint8_t kRequestFlags = IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT | IOSQE_CQE_SKIP_SUCCESS;

Error refused(std::string_view what, int error) {
  return {Errc::not_supported, "io_uring is not available: " + system_error(what, error).text};
}
}  // namespace

Status UringReceiver::prepare() {
  io_uring_params parameters{};
  // DEFER_TASKRUN: a datagram is received by the thread that waits here and at no other time; nothing interrupts it.
  // TASKRUN_FLAG: shows without a system call that something has arrived.
  parameters.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL |
                     IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
  parameters.cq_entries = kCompletions;
  {
    const std::lock_guard lock(shim::ring_addresses());
    if (const int result = ::io_uring_queue_init_params(kSubmissions, &ring_, &parameters); result < 0)
      return refused("io_uring_setup", -result);
  }
  opened_ = true;
  if (const int err = shim::restrict_ring(ring_.ring_fd,
                                          {.operations = kOperations, .registers = kRegisters, .flags = kRequestFlags});
      err != 0)
    return close(), refused("restricting the ring", err);
  void* areas = ::mmap(nullptr, (kAreas + 1) * kAreaSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (areas != MAP_FAILED) areas_ = static_cast<std::byte*>(areas);
  void* ring =
      ::mmap(nullptr, kAreas * sizeof(io_uring_buf), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ring != MAP_FAILED) area_ring_ = static_cast<io_uring_buf_ring*>(ring);
  if (areas_ == nullptr || area_ring_ == nullptr) return close(), system_error("mmap", ENOMEM);
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<std::uint64_t>(area_ring_);
  registration.ring_entries = kAreas;
  registration.bgid = kAreaGroup;
  if (const int result = ::io_uring_register_buf_ring(&ring_, &registration, 0); result < 0)
    return close(), refused("registering buffers", -result);
  direct_.use_room({areas_ + kAreas * kAreaSize, kLongestDatagram});
  files_ = ::io_uring_register_files_sparse(&ring_, kFiles) == 0;
  ::io_uring_buf_ring_init(area_ring_);
  for (unsigned index = 0; index < kAreas; ++index) give_area(index);
  return {};
}

Status UringReceiver::enable() {
  if (const int err = shim::enable_ring(ring_.ring_fd); err != 0) return close(), refused("enabling the ring", err);
  return {};
}

void UringReceiver::close() noexcept {
  if (opened_) {
    const std::lock_guard lock(shim::ring_addresses());
    ::io_uring_queue_exit(&ring_);
  }
  if (areas_ != nullptr) ::munmap(areas_, (kAreas + 1) * kAreaSize);
  if (area_ring_ != nullptr) ::munmap(area_ring_, kAreas * sizeof(io_uring_buf));
  direct_.stop();
  row_ = 0;
  in_table_ = 0;
  opened_ = doomed_ = kick_armed_ = watches_ = by_descriptor_ = false;
  timer_.reset();
  areas_ = nullptr;
  area_ring_ = nullptr;
  armed_.clear();
}

void UringReceiver::let_go() noexcept {
  if (in_kernel_) {
    doomed_ = true;
  } else {
    close();
  }
}

void UringReceiver::give_area(unsigned index) noexcept {
  ::io_uring_buf_ring_add(area_ring_, areas_ + index * kAreaSize, kAreaSize, static_cast<unsigned short>(index),
                          ::io_uring_buf_ring_mask(kAreas), 0);
  ::io_uring_buf_ring_advance(area_ring_, 1);
}

io_uring_sqe* UringReceiver::next_entry() noexcept {
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
  if (entry == nullptr) {
    ::io_uring_submit(&ring_);
    entry = ::io_uring_get_sqe(&ring_);
  }
  return entry;
}

/// Names the file by its place in the ring's table: this saves the kernel a look-up and a reference for each request.
void UringReceiver::name_file(io_uring_sqe& entry, std::uint32_t index, int fd) noexcept {
  const bool fixed = in_table(index);
  entry.fd = fixed ? static_cast<int>(index) : fd;
  if (fixed) {
    entry.flags |= IOSQE_FIXED_FILE;
  } else {
    by_descriptor_ = true;
  }
}

/// If that fails, perhaps for want of memory, the socket is named by its descriptor. Its place may be empty then.
void UringReceiver::put_in_table(std::uint32_t index, int fd) noexcept {
  if (!files_ || index >= kFiles) return;
  in_table_ &= ~(std::uint64_t{1} << index);
  if (::io_uring_register_files_update(&ring_, index, &fd, 1) == 1) in_table_ |= std::uint64_t{1} << index;
}

/// False: there is no memory for what is armed. Then this thread waits as one without a ring.
bool UringReceiver::has_places() noexcept {
  const std::size_t sockets = engine_.core_->sockets.size();
  return armed_.size() >= sockets || attempt([&] { armed_.resize(sockets, 0); });
}

void UringReceiver::arm() noexcept {
  UringEngine::Core& core = *engine_.core_;
  if (!kick_armed_) {
    if (io_uring_sqe* const entry = next_entry(); entry != nullptr) {
      ::io_uring_prep_poll_multishot(entry, core.kick_event, POLLIN);
      ::io_uring_sqe_set_data64(entry, token(Kind::kick, {}));
      kick_armed_ = true;
    }
  }
  for (std::uint32_t index = 0; index < armed_.size(); ++index) {
    const EngineSocket& socket = core.sockets[index];
    if (socket.fd < 0 || armed_[index] == socket.generation || direct_.is(index, socket.generation)) continue;
    const SocketId id{index, socket.generation};
    if (!(socket.watched ? arm_watched(id, socket.fd) : arm_socket(id, socket.fd))) return;
  }
}

bool UringReceiver::arm_socket(SocketId id, int fd) noexcept {
  io_uring_sqe* const entry = next_entry();
  if (entry == nullptr) return false;
  armed_[id.index] = id.generation;
  put_in_table(id.index, fd);
  ::io_uring_prep_recvmsg_multishot(entry, -1, &shape_, MSG_TRUNC);
  name_file(*entry, id.index, fd);
  entry->flags |= IOSQE_BUFFER_SELECT;
  entry->buf_group = kAreaGroup;
  ::io_uring_sqe_set_data64(entry, token(Kind::receive, id));
  return true;
}

/// A one-shot poll: armed again, it reports at once if something is still there. (If another thread removes the
/// descriptor before the poll is submitted, the poll may be of another file. It changes nothing there, and the ring is
/// closed at once.)
bool UringReceiver::arm_watched(SocketId id, int fd) noexcept {
  io_uring_sqe* const entry = next_entry();
  if (entry == nullptr) return false;
  armed_[id.index] = id.generation;
  watches_ = true;
  ::io_uring_prep_poll_add(entry, fd, POLLIN);
  ::io_uring_sqe_set_data64(entry, token(Kind::ready, id));
  return true;
}

/// MSG_DONTWAIT: a datagram has left, or has failed, when the submission returns; so only failures are reported, and
/// the message may be released.
void UringReceiver::queue_sends() noexcept {
  UringEngine::Core& core = *engine_.core_;
  std::swap(sending_, core.outgoing);
  for (Outgoing& out : sending_) {
    const EngineSocket* const socket = core.find(out.socket);
    if (socket == nullptr) continue;
    out.describe();
    io_uring_sqe* const entry = next_entry();
    if (entry == nullptr) {
      core.send_failed(out.socket, ENOBUFS);
      continue;
    }
    // With one part the kernel needs no description of the parts: less to copy.
    if (out.header.msg_iovlen == 1 && out.header.msg_controllen == 0) {
      ::io_uring_prep_send(entry, -1, out.parts[0].iov_base, out.parts[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
      ::io_uring_prep_send_set_addr(entry, reinterpret_cast<const sockaddr*>(out.to.data()),
                                    static_cast<__u16>(out.to_size));
    } else {
      ::io_uring_prep_sendmsg(entry, -1, &out.header, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    name_file(*entry, out.socket.index, socket->fd);
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
    ::io_uring_sqe_set_data64(entry, token(Kind::send, out.socket));
    UringEngine::Core::add_one(core.counts.sent);
  }
}

/// Uses one timer of the ring, not a timeout for each wait, which the kernel would start and stop with every datagram
/// (costly, above all in a virtual machine). A timer that is due earlier is not moved: the leader then wakes early and
/// looks again; by then the event has mostly been postponed anyway. The kernel is told a span, not a moment: for a ring
/// it takes no account of the process's time namespace. False: there is no room for the request.
bool UringReceiver::set_timer(Time until) noexcept {
  if (timer_ && *timer_ <= until) return true;
  io_uring_sqe* const entry = next_entry();
  if (entry == nullptr) return false;
  timer_time_ = span_until(until);
  if (timer_) {
    ::io_uring_prep_timeout_update(entry, &timer_time_, token(Kind::timer, {}), 0);  // it keeps its clock
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
    ::io_uring_sqe_set_data64(entry, token(Kind::timer_change, {}));
  } else {
    ::io_uring_prep_timeout(entry, &timer_time_, 0, IORING_TIMEOUT_BOOTTIME);  // MonotonicClock's
    ::io_uring_sqe_set_data64(entry, token(Kind::timer, {}));
  }
  timer_ = until;
  return true;
}

/// While another thread led, a poll that is armed here may have fired for something that the other thread has handled.
/// A wait would end at once because of that, and would count as a successful one.
bool UringReceiver::has_earlier_news() noexcept {
  const std::uint64_t turns = engine_.core_->turns.load(std::memory_order_relaxed);
  if (std::exchange(turns_, turns) == turns || !watches_) return false;
  return (IO_URING_READ_ONCE(*ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

void UringReceiver::receive(std::optional<Time> until) {
  UringEngine::Core& core = *engine_.core_;
  if (!opened_) attempt([this] { (void)open(); });  // it was closed because a socket was removed
  if (!opened_ || !has_places()) return core.epoll->receive(until);
  const bool earlier = has_earlier_news();
  const bool polls = polling_.try_now();
  if (!polls) {
    stop_direct();
  } else if (!direct_.active() && row_ >= kBusy) {
    start_direct();
  }
  arm();
  if (direct_.active()) {
    core.flush(false);
  } else {
    queue_sends();
  }
  core.host->monitor().at_exit(nullptr);  // the wait sends what is queued
  if (earlier) {
    ::io_uring_submit_and_get_events(&ring_);
    take_all();
    if (!opened_ || core.next_arrival < core.arrivals.size()) return;
    arm();  // what has ended without an arrival
  }
  if (std::exchange(by_descriptor_, false)) [[unlikely]] {
    // Still inside the monitor: outside, another thread may close the descriptor, and its number be another file's.
    ::io_uring_submit(&ring_);
    if (::io_uring_sq_ready(&ring_) != 0) return take_all();
  }
  UringEngine::Core::add_one(core.counts.waits);
  in_kernel_ = true;
  core.host->monitor().unlock();
  if (!polls || !poll(until)) sleep(until);
  core.host->monitor().lock();
  in_kernel_ = false;
  take_all();
  if (doomed_) close();
}

void UringReceiver::take_all() noexcept {
  take_completions();
  if (direct_.found()) take_direct();
  // Requests that the kernel has not taken: it had no room for completions.
  for (int tries = 0; ::io_uring_sq_ready(&ring_) != 0 && tries < 100; ++tries) {
    ::io_uring_submit(&ring_);
    take_completions();
  }
  if (::io_uring_sq_ready(&ring_) != 0) close();
  sending_.clear();
}

void UringReceiver::take_completions() noexcept {
  UringEngine::Core& core = *engine_.core_;
  unsigned head = 0;
  unsigned count = 0;
  io_uring_cqe* entry = nullptr;
  io_uring_for_each_cqe(&ring_, head, entry) {
    ++count;
    const std::uint64_t data = entry->user_data;
    const SocketId id{static_cast<std::uint32_t>(data), static_cast<std::uint32_t>(data >> 32) & 0xfffffff};
    switch (static_cast<Kind>(data >> 60)) {
      case Kind::receive: take_datagram(*entry, id); break;
      case Kind::kick: {
        std::uint64_t value = 0;
        (void)!::read(core.kick_event, &value, sizeof value);
        if ((entry->flags & IORING_CQE_F_MORE) == 0) kick_armed_ = false;
        break;
      }
      case Kind::ready:
        if (armed_[id.index] == id.generation) armed_[id.index] = 0;
        watches_ = false;
        if (entry->res > 0) (void)core.readable(id);  // without memory, the next wait reports it again
        break;
      case Kind::send: core.send_failed(id, -entry->res); break;
      case Kind::cancel: break;  // it has failed: the receive had ended by itself
      case Kind::timer:
      case Kind::timer_change:  // it has failed: the timer has gone off
        timer_.reset();
        break;
    }
  }
  ::io_uring_cq_advance(&ring_, count);
}

void UringReceiver::take_datagram(const io_uring_cqe& entry, SocketId id) noexcept {
  UringEngine::Core& core = *engine_.core_;
  if ((entry.flags & IORING_CQE_F_MORE) == 0 && armed_[id.index] == id.generation) armed_[id.index] = 0;
  if (entry.res == -ECANCELED) return;
  if (entry.res < 0) core.receive_failed(id, -entry.res);  // ENOBUFS: perhaps no area was free
  if ((entry.flags & IORING_CQE_F_BUFFER) == 0) return;    // it will be armed again
  const unsigned area = entry.flags >> IORING_CQE_BUFFER_SHIFT;
  const std::byte* const bytes = areas_ + area * kAreaSize;
  const std::size_t before = sizeof(io_uring_recvmsg_out) + kAddressRoom + kControlRoom;
  if (entry.res >= static_cast<int>(before)) {
    io_uring_recvmsg_out out{};
    std::memcpy(&out, bytes, sizeof out);
    const std::size_t size = static_cast<std::size_t>(entry.res) - before;
    if ((out.flags & MSG_TRUNC) != 0 || out.payloadlen != size) {
      core.lost(id);
    } else {
      const std::byte* const name = bytes + sizeof out;
      came_from(id);
      core.arrived(id, {bytes + before, size}, {name, std::min<std::size_t>(out.namelen, kAddressRoom)},
                   {name + kAddressRoom, std::min<std::size_t>(out.controllen, kControlRoom)});
    }
  }
  give_area(area);
}

}  // namespace lrpc::netrpc
