// Serves a name exported on this machine as a version of a Sun RPC program. Each remote host has its own binding to the
// server, so the server knows which host calls. Needs only the declaration that the server has exported.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/raw_binding.h"
#include "xdr_values.h"

namespace lrpc::sun {

struct ServedOptions {
  std::string name;           ///< The name exported here.
  std::uint32_t version = 1;  ///< Of the Sun RPC program; the interface's major version must be the same.
  std::string nameserver;     ///< lrpcd's socket; empty: the default.
  std::chrono::milliseconds forget{60'000};   ///< A binding ends after so long without use.
  std::size_t max_bindings = 256;             ///< Callers at one time: hosts, or keys of hosts.
  std::function<void(std::string)> notice{};  ///< Gets why the server cannot be called; once in kSilence. Any thread.
};

/// Thread-safe. Only in the process that exports shim::kNetworkName: nobody else may call in the name of other hosts.
class ServedProgram {
 public:
  using Clock = std::chrono::steady_clock;
  /// What one thread works with, kept from call to call so that most calls allocate nothing here.
  struct Work {
    /// The most bytes that a thread keeps while it waits for the next call.
    static constexpr std::size_t kKept = 256 * 1024;
    std::vector<std::byte> arguments;  ///< For the caller of call() alone.
    Scratch scratch;
    std::vector<std::byte> packed;
    std::unique_ptr<std::byte[]> returned;  ///< Not zeroed: what a call leaves untouched takes no memory.
    std::size_t room = 0;                   ///< Of `returned`.
    netrpc::XdrWriter results;

    [[nodiscard]] std::size_t kept() const noexcept;
    /// To be called after each call: frees everything if that is more than kKept.
    void shed() noexcept {
      if (kept() > kKept) *this = {};
    }
  };

  explicit ServedProgram(ServedOptions options) : options_(std::move(options)) {}

  /// Calls procedure `number` with hostile `arguments` for `from`; its results are then in `work.results`. Blocks while
  /// the procedure runs, at most until `deadline`. If `from` has no binding yet, first blocks while one is imported:
  /// other callers without a binding wait meanwhile, and share a failure that would be theirs, too. If the server was
  /// restarted, tries once more. Errors: name_unknown (nobody exports the name), bad_procedure (there is none of that
  /// number, or it passes handles), argument_out_of_range (the arguments are not the procedure's), call_failed
  /// (anything else).
  [[nodiscard]] Errc call(const shim::Principal& from, std::uint32_t number, std::span<const std::byte> arguments,
                          Clock::time_point deadline, Work& work) noexcept;
  /// Ends the bindings that have not been used for options.forget. May wait for the library's watcher.
  void sweep(Clock::time_point now) noexcept;

 private:
  struct Bound {
    Bound(client::RawBinding imported, std::shared_ptr<const stubgen::Interface> declared, Clock::time_point now)
        : binding(std::move(imported)), interface(std::move(declared)), used(now) {}
    client::RawBinding binding;
    const std::shared_ptr<const stubgen::Interface> interface;
    std::atomic<Clock::time_point> used;
    std::atomic<bool> again{false};  ///< It has served more than the call that it was made for.
  };
  using Bindings = std::map<shim::Principal, std::shared_ptr<Bound>>;

  [[nodiscard]] std::shared_ptr<Bound> find(const shim::Principal& from);
  [[nodiscard]] Result<std::shared_ptr<Bound>> bind(const shim::Principal& from, Clock::time_point deadline);
  [[nodiscard]] Result<std::shared_ptr<Bound>> import_for(const shim::Principal& from);
  [[nodiscard]] Result<client::RawBinding> import_in_turn(const InterfaceId& interface, const shim::Principal& from,
                                                          const ImportOptions& import);
  /// Removes and returns the binding that makes room for another one.
  [[nodiscard]] std::shared_ptr<Bound> oust_locked() noexcept;
  [[nodiscard]] Status learn(const shim::Described& described);
  [[nodiscard]] Errc call_through(Bound& bound, std::uint32_t number, std::span<const std::byte> arguments,
                                  Clock::time_point deadline, Work& work);
  void drop(const shim::Principal& from, const std::shared_ptr<Bound>& bound);
  /// `why` continues "'NAME' cannot be called by Sun RPC: ".
  void complain(const std::string& why);

  const ServedOptions options_;
  static constexpr std::chrono::seconds kSilence{10};
  std::mutex mutex_;
  Bindings bindings_;
  bool importing_ = false;  ///< One at a time.
  std::condition_variable imported_;
  Clock::time_point may_oust_{};  ///< From then on a binding may be ousted.
  std::uint64_t imports_ = 0;     ///< Those that have ended,
  Status last_import_;            ///< and what became of the last one.
  Clock::time_point may_complain_{};

  // Used only by the thread that imports.
  std::shared_ptr<const stubgen::Interface> interface_;  ///< The last that was exported.
  std::uint64_t refused_hash_ = 0;                       ///< Of the last declaration that cannot be served,
  Status refusal_;                                       ///< and why.
};

}  // namespace lrpc::sun
