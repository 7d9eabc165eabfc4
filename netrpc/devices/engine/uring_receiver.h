// A thread's own ring. Only its thread enters it: what arrives is then taken in that thread
// (IORING_SETUP_DEFER_TASKRUN), and requests that stay armed while another thread leads take nothing away from it.
#pragma once

#include <liburing.h>

#include "lrpc/detail/shim/system/back_off.h"
#include "netrpc/devices/engine/core.h"
#include "netrpc/devices/engine/direct_socket.h"

namespace lrpc::netrpc {

class UringReceiver final : public Receiver {
 public:
  explicit UringReceiver(UringEngine& engine) noexcept;
  UringReceiver(const UringReceiver&) = delete;
  UringReceiver& operator=(const UringReceiver&) = delete;
  ~UringReceiver() override;

  /// Makes the ring and enables it for the calling thread. Errors: not_supported, with what was refused; system_error.
  Status open();
  /// Makes the ring: all that needs a new descriptor. Any thread. Errors: as open().
  Status prepare();
  /// Enables what prepare() has made, for the calling thread, which alone may use it from then on.
  Status enable();
  void receive(std::optional<Time> until) override;
  /// May be called while its thread is in receive(): that one then closes the ring when it comes back.
  void let_go() noexcept override;
  /// The engine ends: its thread may keep this object, but nothing of the kernel's.
  void end() noexcept {
    close();
    over_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_acquire); }

 private:
  static constexpr unsigned kSubmissions = 128;
  static constexpr unsigned kCompletions = 1024;
  static constexpr unsigned kFiles = 64;  ///< Sockets in the ring's table; more are named by their descriptors.
  static constexpr unsigned kAreas = 32;
  /// The header that io_uring writes, the sender's address, the datagram; a multiple of the page size, so that an area
  /// for long datagrams costs one page until a long one comes.
  static constexpr std::size_t kAreaSize = 69632;
  static constexpr int kAreaGroup = 1;
  enum class Kind : std::uint64_t { receive = 1, kick, send, timer, timer_change, cancel, ready };
  /// Datagrams in a row from one socket until a thread that polls receives from it past the ring.
  static constexpr std::uint32_t kBusy = 16;

  static std::uint64_t token(Kind kind, SocketId id) noexcept {
    return static_cast<std::uint64_t>(kind) << 60 | static_cast<std::uint64_t>(id.generation & 0xfffffff) << 32 |
           id.index;
  }
  void close() noexcept;
  /// Outside the monitor: looks for what arrives without sleeping. True: something has.
  [[nodiscard]] bool poll(std::optional<Time> until) noexcept;
  [[nodiscard]] bool something_there() const noexcept;
  void look() noexcept;
  void start_direct() noexcept;
  void stop_direct() noexcept;
  void sleep(std::optional<Time> until) noexcept;
  void take_direct() noexcept;
  void came_from(SocketId id) noexcept;
  void name_file(io_uring_sqe& entry, std::uint32_t index, int fd) const noexcept;
  [[nodiscard]] io_uring_sqe* next_entry() noexcept;
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
  bool doomed_ = false;  ///< To be closed when its thread comes back.
  bool kick_armed_ = false;
  bool watches_ = false;            ///< A poll of a descriptor that is only watched is armed.
  std::uint64_t turns_ = 0;         ///< Core::turns when it received last.
  std::optional<Time> timer_;       ///< When the ring's one timer goes off; unset: it does not run.
  __kernel_timespec timer_time_{};  ///< What its request says.
  bool files_ = false;              ///< The ring has a table of sockets.
  std::atomic<bool> over_{false};
  shim::BackOff polling_;       ///< Times that polling has not brought anything, or has cost a time slice.
  DirectSocket direct_;         ///< Not armed in the ring while it is active.
  SocketId last_;               ///< That a datagram came from,
  std::uint32_t row_ = 0;       ///< and how many in a row.
  std::byte* areas_ = nullptr;  ///< One more than the ring has: direct_'s.
  io_uring_buf_ring* area_ring_ = nullptr;
  msghdr shape_{};                    ///< What a receive asks for: the sender's address.
  std::vector<std::uint32_t> armed_;  ///< By socket: the generation that is armed here; 0: none.
  std::vector<Outgoing> sending_;     ///< In the kernel's hands, or just come back from there.
};

}  // namespace lrpc::netrpc
