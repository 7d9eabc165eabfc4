// A client's binding to a server, without the server: the fuzzer calls the procedures of this project's own services
// directly, with arguments that their stubs would accept. (The stubs have fuzzers of their own.)
#pragma once

#include <memory>
#include <utility>

#include "call/primed_context.h"
#include "call/served_binding.h"
#include "input.h"
#include "lrpc/detail/shim/call/call_word.h"

namespace lrpc::fuzz {

class Caller {
 public:
  /// `pdl`: the service's. `id`: the binding's, which no other binding has.
  Caller(const Pdl& pdl, std::uint64_t id, uid_t user) : binding_(make(pdl, id, user)) {
    astack_.head = &head_;
    astack_.binding = binding_.get();
    const shim::CallWord word = shim::CallWord::called(1, 0, shim::kNoProcessor);
    head_.word.store(word.bits());
    context_.prime(astack_, word);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  /// The client ends.
  ~Caller() { binding_->handles().close_all(); }

  [[nodiscard]] CallContext& context() noexcept { return context_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return binding_->id(); }
  /// Whether calls from the next one on are abandoned: nobody waits for their results.
  void abandon(bool abandoned) noexcept {
    const auto generation = std::uint64_t{abandoned ? 2U : 1U};  // another generation: its A-stack is in another call
    head_.word.store(shim::CallWord::called(generation, 0, shim::kNoProcessor).bits());
  }
  /// The object behind a handle that it was granted. Null: it has no such handle.
  template <class T, class H>
  [[nodiscard]] std::shared_ptr<T> object(H handle) {
    return context_.resolve<T>(handle);
  }

 private:
  static std::shared_ptr<server::ServedBinding> make(const Pdl& pdl, std::uint64_t id, uid_t user) {
    static constexpr AStackClass kSmall[] = {{.image_size = 16, .tail_size = 0, .count = 1}};
    auto layout = shim::RegionLayout::of(kSmall);
    require(bool(layout), "a binding has a layout");
    auto region = shim::Region::private_to_this_domain(*std::move(layout));
    require(bool(region), "there is memory for a binding");
    auto interface = std::make_shared<server::ServedInterface>();
    interface->pdl = &pdl;
    server::ServedParts parts;
    parts.id = id;
    parts.client.uid = user;
    parts.gate = shim::Gate::none;
    parts.region = *std::move(region);
    parts.interface = std::move(interface);
    return std::make_shared<server::ServedBinding>(std::move(parts));
  }

  const std::shared_ptr<server::ServedBinding> binding_;
  shim::AStackHead head_{};
  server::ServedAStack astack_;
  server::PrimedContext context_;
};

}  // namespace lrpc::fuzz
