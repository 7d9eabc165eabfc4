// A thread's own ring. Only this thread enters it, and datagrams are received only then (IORING_SETUP_DEFER_TASKRUN).
// So requests that stay armed while another thread leads take no datagrams from that one.
#pragma once

#include <liburing.h>

#include "lrpc/detail/shim/system/back_off.h"
#include "netrpc/devices/engine/core.h"
#include "netrpc/devices/engine/direct_socket.h"

namespace lrpc::netrpc {

class UringReceiver final : public Receiver {
 public:
  explicit UringReceiver(UringEngine& engine) noexcept : engine_(engine) {
    shape_.msg_namelen = kAddressRoom;
    shape_.msg_controllen = kControlRoom;
  }
  ~UringReceiver() override { close(); }

  /// Makes the ring and enables it for the calling thread. Errors: not_supported, with what was refused; system_error.
  Status open() {
    if (auto prepared = prepare(); !prepared) return prepared;
    return enable();
  }
  /// The part of open() that needs new descriptors. Any thread. Errors: as open().
  Status prepare();
  /// Enables what prepare() has made, for the calling thread, which alone may use it from then on.
  Status enable();
  void receive(std::optional<Time> until) override;
  /// May be called while the ring's thread is in receive(): that thread then closes the ring when it returns from the
  /// kernel.
  void let_go() noexcept override;
  /// Called when the engine ends: frees the kernel's resources, though the ring's thread may keep this object.
  void end() noexcept {
    close();
    over_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_acquire); }

 private:
  static constexpr unsigned kSubmissions = 128;
  static constexpr unsigned kCompletions = 1024;
  static constexpr unsigned kFiles = 64;  ///< Sockets in the ring's table; others are named by their descriptors.
  static constexpr unsigned kAreas = 32;
  /// The header that io_uring writes, the sender's address, the control message, the datagram; a multiple of the page
  /// size, so that an area for long datagrams costs one page until a long one comes.
  static constexpr std::size_t kAreaSize = 69632;
  static constexpr int kAreaGroup = 1;
  enum class Kind : std::uint64_t { receive = 1, kick, send, timer, timer_change, cancel, ready };
  /// After so many datagrams in a row from one socket, a polling thread receives from it bypassing the ring.
  static constexpr std::uint32_t kBusy = 16;

  static std::uint64_t token(Kind kind, SocketId id) noexcept {
    return static_cast<std::uint64_t>(kind) << 60 | static_cast<std::uint64_t>(id.generation & 0xfffffff) << 32 |
           id.index;
  }
  void close() noexcept;
  /// Outside the monitor: waits without sleeping. True: something has arrived, or `until` has come.
  [[nodiscard]] bool poll(std::optional<Time> until) noexcept;
  [[nodiscard]] bool something_there() const noexcept { return direct_.found() || ::io_uring_cq_ready(&ring_) != 0; }
  void look() noexcept;
  void start_direct() noexcept;
  void stop_direct() noexcept;
  [[nodiscard]] __kernel_timespec span_until(Time until) const noexcept;
  void sleep(std::optional<Time> until) noexcept;
  void take_direct() noexcept;
  void came_from(SocketId id) noexcept {
    row_ = id.index == last_.index && id.generation == last_.generation ? row_ + 1 : 1;
    last_ = id;
  }
  static_assert(kFiles <= 64, "in_table_ has a bit for each");
  [[nodiscard]] bool in_table(std::uint32_t index) const noexcept {
    return index < kFiles && (in_table_ >> index & 1) != 0;
  }
  void put_in_table(std::uint32_t index, int fd) noexcept;
  void name_file(io_uring_sqe& entry, std::uint32_t index, int fd) noexcept;
  [[nodiscard]] io_uring_sqe* next_entry() noexcept;
  [[nodiscard]] bool has_places() noexcept;
  void arm() noexcept;
  [[nodiscard]] bool arm_socket(SocketId id, int fd) noexcept;
  [[nodiscard]] bool arm_watched(SocketId id, int fd) noexcept;
  [[nodiscard]] bool has_earlier_news() noexcept;
  void take_all() noexcept;
  void queue_sends() noexcept;
  [[nodiscard]] bool set_timer(Time until) noexcept;
  void take_completions() noexcept;
  void take_datagram(const io_uring_cqe& entry, SocketId id) noexcept;
  void give_area(unsigned index) noexcept;

  UringEngine& engine_;
  io_uring ring_{};
  bool opened_ = false;
  bool in_kernel_ = false;
  bool doomed_ = false;  ///< To be closed when its thread returns from the kernel.
  bool kick_armed_ = false;
  bool watches_ = false;            ///< A poll of a descriptor that is only watched is armed.
  std::uint64_t turns_ = 0;         ///< Core::turns at the last receive().
  std::optional<Time> timer_;       ///< When the ring's one timer goes off; unset: it does not run.
  __kernel_timespec timer_time_{};  ///< In the timer's request.
  bool files_ = false;              ///< The ring has a table of sockets,
  std::uint64_t in_table_ = 0;      ///< and these are in it: a bit for each, by its index.
  bool by_descriptor_ = false;      ///< A request that names a descriptor has been queued, perhaps not submitted.
  std::atomic<bool> over_{false};
  shim::BackOff polling_;       ///< Skips polling after it has failed or has cost a time slice.
  DirectSocket direct_;         ///< Not armed in the ring while it is active.
  SocketId last_;               ///< From which the last datagram came,
  std::uint32_t row_ = 0;       ///< and how many did in a row.
  std::byte* areas_ = nullptr;  ///< The ring's, and one for direct_.
  io_uring_buf_ring* area_ring_ = nullptr;
  msghdr shape_{};                    ///< Makes a receive return the sender's address and the control message.
  std::vector<std::uint32_t> armed_;  ///< By socket: the generation that is armed here; 0: none.
  std::vector<Outgoing> sending_;     ///< Submitted to the kernel; cleared after the wait.
};

}  // namespace lrpc::netrpc
