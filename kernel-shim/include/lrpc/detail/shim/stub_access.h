// What generated stubs may use of our classes, and programs may not.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace lrpc::detail {

/// The friend of Binding, Pending, CallContext and Server: gives generated code and this project's libraries their
/// private members of the same names. It promises nothing to programs and may change in any version, as stubs are
/// generated again for each.
struct StubAccess {
  // lrpc::Binding
  template <class Binding>
  [[nodiscard]] static auto& object(const Binding& binding) noexcept {
    return binding.object();
  }
  template <class Binding>
  [[nodiscard]] static auto offer_callback(Binding& binding) {
    return binding.offer_callback();
  }
  template <class Binding, class Object>
  [[nodiscard]] static Binding bind(std::unique_ptr<Object> object) noexcept {
    return Binding(std::move(object));
  }

  // lrpc::Pending
  template <class Pending>
  [[nodiscard]] static auto& call(Pending& pending) noexcept {
    return pending.call();
  }

  // lrpc::CallContext
  template <class Context>
  [[nodiscard]] static std::byte* image(const Context& context) noexcept {
    return context.image();
  }
  template <class Context>
  [[nodiscard]] static std::byte* tail(Context& context) noexcept {
    return context.tail();
  }
  template <class Context>
  [[nodiscard]] static auto told_room(const Context& context) noexcept {
    return context.told_room();
  }
  template <class Context>
  [[nodiscard]] static auto scratch(Context& context, std::size_t size) {
    return context.scratch(size);
  }
  template <class Context>
  [[nodiscard]] static auto& callback_port(Context& context) noexcept {
    return context.callback_port();
  }
  // lrpc::Server
  template <class Server>
  [[nodiscard]] static auto& domain(Server& server) noexcept {
    return server.domain();
  }
};

}  // namespace lrpc::detail
