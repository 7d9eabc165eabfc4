// A stand-in for libclient: only what call stubs need. The stubs are the real ones (lrpc/detail/client/call/stub.h);
// they include this file instead of the real one of the same name. A transfer calls the server's entry stub directly.
// Hooks let a test change the A-stack in between, as a hostile peer would.
#pragma once

#include <lrpc/server.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc {

struct ImportOptions {
  Server* server = nullptr;
  std::chrono::milliseconds timeout{0};
  std::chrono::milliseconds call_timeout{0};
};

namespace client {

[[nodiscard]] inline detail::Failure refused(Errc code, const char* what) noexcept { return Error{code, what}; }
[[nodiscard]] inline detail::Failure not_copied(Errc code, const char* what) noexcept {
  return code == Errc::result_too_long ? refused(code, what) : code;
}

/// One A-stack serves all classes; it is as large as the largest class.
class BindingObject {
 public:
  BindingObject(Server& server, const Pdl& pdl) : server_(server), context_(largest(pdl).first, largest(pdl).second) {}

  [[nodiscard]] bool remote() const noexcept { return remote_bit; }

  /// Calls the entry stub on the A-stack as it is, for tests that write the image themselves.
  std::uint16_t enter(std::uint16_t procedure) {
    ++calls;
    const std::uint16_t status = server_.stubs()[procedure](server_.impl(), context_);
    context_.end_call();
    return status;
  }
  [[nodiscard]] CallContext& context() noexcept { return context_; }

  bool remote_bit = false;
  std::size_t remote_calls = 0;
  bool astacks_in_use = false;
  std::size_t calls = 0;
  std::function<void(CallContext&)> before_call;                      ///< Acts as a hostile client.
  std::function<std::uint16_t(CallContext&, std::uint16_t)> instead;  ///< Acts as a hostile server.

 private:
  static std::pair<std::size_t, std::size_t> largest(const Pdl& pdl) {
    std::pair<std::size_t, std::size_t> size{0, 0};
    for (const AStackClass& shared : pdl.classes) {
      size.first = std::max<std::size_t>(size.first, shared.image_size);
      size.second = std::max<std::size_t>(size.second, shared.tail_size);
    }
    return size;
  }

  Server& server_;
  CallContext context_;
};

class Call {
 public:
  Call(BindingObject& binding, std::uint16_t /*astack_class*/) noexcept : binding_(binding) {}
  [[nodiscard]] bool taken() const noexcept { return !binding_.astacks_in_use; }
  [[nodiscard]] Errc error() const noexcept { return Errc::no_astack; }
  [[nodiscard]] std::byte* image() const noexcept { return binding_.context().image(); }
  [[nodiscard]] std::byte* tail() const noexcept { return binding_.context().tail(); }
  [[nodiscard]] std::uint16_t transfer(std::uint16_t procedure) noexcept {
    if (binding_.before_call) binding_.before_call(binding_.context());
    if (binding_.instead) return binding_.instead(binding_.context(), procedure);
    return binding_.enter(procedure);
  }
  [[nodiscard]] static Errc failure(std::uint16_t status) noexcept {
    if ((status & shim::call_status::kFailed) == 0) return Errc::call_failed;
    return static_cast<Errc>(status & 0x7fff);
  }
  [[nodiscard]] static detail::Failure failure(std::uint16_t status, const char* procedure) noexcept {
    return Error{failure(status), procedure};
  }

 private:
  BindingObject& binding_;
};

/// A call over the network path. This one works like a local call, and is counted.
class RemoteCall : public Call {
 public:
  RemoteCall(BindingObject& binding, std::uint16_t astack_class) noexcept
      : Call(binding, astack_class), object_(binding) {}
  [[nodiscard]] std::uint16_t transfer(std::uint16_t procedure) noexcept {
    ++object_.remote_calls;
    return Call::transfer(procedure);
  }
  [[nodiscard]] std::uint16_t send(std::uint16_t procedure) noexcept {
    (void)transfer(procedure);
    return 0;
  }

 private:
  BindingObject& object_;
};

/// The call runs when it is started; only its results wait, on the A-stack.
class PendingCall {
 public:
  PendingCall(BindingObject& binding, std::uint16_t /*astack_class*/) noexcept : binding_(&binding) {}
  explicit PendingCall(Errc error, const char* what = "") noexcept : error_(error), what_(what) {}
  [[nodiscard]] bool taken() const noexcept { return binding_ != nullptr && !binding_->astacks_in_use; }
  [[nodiscard]] Errc error() const noexcept { return error_; }
  [[nodiscard]] detail::Failure why_not_started() const noexcept { return refused(error_, what_); }
  [[nodiscard]] static detail::Failure failure(std::uint16_t status, const char* procedure) noexcept {
    return Call::failure(status, procedure);
  }
  [[nodiscard]] std::byte* image() const noexcept { return binding_->context().image(); }
  [[nodiscard]] std::byte* tail() const noexcept { return binding_->context().tail(); }
  bool ring(std::uint16_t procedure, bool /*may_block*/ = false) noexcept {
    status_ = Call(*binding_, 0).transfer(procedure);
    return true;
  }
  void leave() noexcept {}
  [[nodiscard]] std::uint16_t status() const noexcept { return status_; }

 private:
  BindingObject* binding_ = nullptr;
  std::uint16_t status_ = 0;
  Errc error_ = Errc::no_astack;
  const char* what_ = "";
};

}  // namespace client

template <class Outcome>
class [[nodiscard]] Pending {
 public:
  Pending(Errc error) noexcept : call_(error) {}  // NOLINT: as the real one
  Pending(Errc error, const char* what) noexcept : call_(error, what) {}
  Pending(client::PendingCall call, Outcome outcome) noexcept : call_(call), outcome_(outcome) {}
  typename Outcome::Result_ finish() noexcept {
    if (!call_.taken()) return call_.why_not_started();
    return outcome_(call_.status(), call_);
  }

 private:
  client::PendingCall call_;
  Outcome outcome_{};
};

}  // namespace lrpc
