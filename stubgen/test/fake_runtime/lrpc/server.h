// A stand-in for libserver: only what generated entry stubs need, in one thread and one address space.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/declared_errors.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/stub_access.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc {

class Server;

/// The path back to the caller. Leads to the server that the test sets.
struct CallbackPort {
  Server* server = nullptr;
  template <class Stub, auto kImportOver, auto kBinding, class Options>
  [[nodiscard]] Result<std::shared_ptr<Stub>> bound(Options options) {
    options.server = server;
    auto made = kImportOver(UniqueFd(), options);
    if (!made) return made.error();
    return std::make_shared<Stub>(*std::move(made));
  }
};

/// An A-stack and the server's side of a call on it.
class CallContext {
 public:
  CallContext(std::size_t image_size, std::size_t tail_size) : memory_(image_size + kAlignment), tail_(tail_size) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    image_ = memory_.data() + (kAlignment - address % kAlignment) % kAlignment;
  }

  [[nodiscard]] std::byte* image() const noexcept { return image_; }
  [[nodiscard]] std::byte* tail() noexcept { return tail_.data(); }
  [[nodiscard]] std::span<std::byte> image_bytes(std::size_t size) noexcept { return {image_, size}; }
  [[nodiscard]] std::span<std::byte> tail_bytes() noexcept { return tail_; }

  [[nodiscard]] std::span<std::byte> scratch(std::size_t size) {
    // Exactly the requested size, so that a sanitizer detects an overrun by one byte.
    scratch_.push_back(std::make_unique<std::byte[]>(size));
    return {scratch_.back().get(), size};
  }
  void end_call() { scratch_.clear(); }

  template <class H, class T>
  [[nodiscard]] H grant(std::shared_ptr<T> object) {
    const std::uint64_t value = ++last_handle_;
    handles_[value] = {H::TagType::kTag, typeid(T), std::move(object)};
    return H{value};
  }
  template <class T, class H>
  [[nodiscard]] std::shared_ptr<T> resolve(H handle) {
    const auto found = handles_.find(handle.value);
    if (found == handles_.end() || found->second.tag != H::TagType::kTag || found->second.type != typeid(T))
      return nullptr;
    return std::static_pointer_cast<T>(found->second.object);
  }
  template <class T, class H>
  [[nodiscard]] std::shared_ptr<T> close(H handle) {
    auto object = resolve<T>(handle);
    if (object != nullptr) handles_.erase(handle.value);
    return object;
  }
  template <class... H>
  [[nodiscard]] bool close_together(H... several) {
    const std::set<std::uint64_t> values{several.value...};
    if (values.size() != sizeof...(H) || !(handles_.contains(several.value) && ...)) return false;
    (handles_.erase(several.value), ...);
    return true;
  }
  [[nodiscard]] CallbackPort& callback_port() noexcept { return callback_port_; }
  [[nodiscard]] std::size_t open_handles() const noexcept { return handles_.size(); }

  std::string told;  ///< The text of the error that a procedure returned last.

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Entry {
    std::uint32_t tag = 0;
    std::type_index type = typeid(void);
    std::shared_ptr<void> object;
  };

  std::vector<std::byte> memory_;
  std::vector<std::byte> tail_;
  std::byte* image_ = nullptr;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::map<std::uint64_t, Entry> handles_;
  CallbackPort callback_port_;
  std::uint64_t last_handle_ = 0;
};

using EntryStub = std::uint16_t (*)(void* impl, CallContext& context);
namespace server {
template <EntryStub kStub>
inline constexpr EntryStub kEntry = kStub;
}  // namespace server

namespace server {

[[nodiscard]] inline std::uint16_t failed(Errc code) {
  return static_cast<std::uint16_t>(shim::call_status::kFailed | static_cast<std::uint16_t>(code));
}
/// Stores the text in the context: the real runtime decides where it goes on the A-stack.
[[nodiscard]] inline std::uint16_t failed(CallContext& context, Errc code, const std::string* text) {
  context.told = text != nullptr ? *text : "";
  return failed(code);
}
template <class T, class... Raised, class... Put>
[[nodiscard]] std::uint16_t failed(CallContext& context, const Result<T, Raised...>& outcome,
                                   std::byte* image = nullptr, std::span<const ImageRange> places = {}, Put... put) {
  if constexpr (sizeof...(Raised) != 0) {
    const std::uint16_t raised = lrpc::detail::put_declared_error(outcome, image, places, put...);
    if (raised != 0) return raised;
  }
  return failed(context, outcome.code(), lrpc::detail::text_of(outcome));
}

template <class ResultType, class Body>
[[nodiscard]] ResultType run(Body&& body) {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      std::forward<Body>(body)();
      return ResultType();
    } else {
      return std::forward<Body>(body)();
    }
  } catch (...) {
    return Errc::exception_escaped;
  }
}

}  // namespace server

using ExportId = std::uint64_t;
struct ExportOptions {};

/// Holds one export. Every bind gets it, over the socket or by name.
class Server {
 public:
  // NOLINTNEXTLINE(performance-unnecessary-value-param): as the real one
  Result<ExportId> export_interface(std::string /*name*/, const Pdl& pdl, std::span<const EntryStub> stubs,
                                    const void* impl, ExportOptions /*options*/ = {}) {
    pdl_ = &pdl;
    stubs_ = stubs;
    impl_ = const_cast<void*>(impl);
    return ExportId{1};
  }
  Status serve_over(UniqueFd /*socket*/, const Pdl& pdl, std::span<const EntryStub> stubs, const void* impl,
                    ExportOptions options = {}) {
    (void)export_interface({}, pdl, stubs, impl, options);
    return {};
  }

  [[nodiscard]] const Pdl& pdl() const noexcept { return *pdl_; }
  [[nodiscard]] std::span<const EntryStub> stubs() const noexcept { return stubs_; }
  [[nodiscard]] void* impl() const noexcept { return impl_; }

 private:
  const Pdl* pdl_ = nullptr;
  std::span<const EntryStub> stubs_;
  void* impl_ = nullptr;
};

}  // namespace lrpc
