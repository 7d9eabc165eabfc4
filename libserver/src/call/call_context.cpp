#include "lrpc/server/call_context.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "lrpc/server/run.h"
#include "lrpc/shim/binder/told_text.h"
#include "lrpc/shim/call/gates.h"
#include "served_binding.h"

namespace lrpc {
namespace server {
namespace {

constexpr std::align_val_t kScratchAlignment{64};

std::byte* allocate(std::size_t size) { return static_cast<std::byte*>(::operator new(size, kScratchAlignment)); }

}  // namespace

void Scratch::Free::operator()(std::byte* memory) const noexcept { ::operator delete(memory, kScratchAlignment); }

std::span<std::byte> Scratch::take(std::size_t size) {
  const std::size_t needed = (size + 63) / 64 * 64;
  if (used_ + needed <= kept_size_) {
    std::byte* at = kept_.get() + used_;
    used_ += needed;
    return {at, size};
  }
  if (used_ == 0 && needed <= kKeep) {  // nobody uses the kept chunk yet: let it grow
    const std::size_t grown = std::min(kKeep, std::max(needed, kept_size_ * 2));
    kept_.reset(allocate(grown));
    kept_size_ = grown;
    used_ = needed;
    return {kept_.get(), size};
  }
  chunks_.emplace_back(allocate(needed));
  return {chunks_.back().get(), size};
}

void Scratch::reset() noexcept {
  used_ = 0;
  chunks_.clear();
}

std::uint16_t failed(const CallContext& context, Errc code, const std::string* text) noexcept {
  using namespace shim::call_status;
  // An Errc that a procedure has made of any number must not say that there is a text.
  const auto status = static_cast<std::uint16_t>(failed(code) & ~kTold);
  if (text == nullptr || !shim::put_told(context.told_room(), *text)) return status;
  return status | kTold;
}

}  // namespace server

const server::ServedAStack& CallContext::astack() const noexcept {
  return static_cast<const server::ServedAStack&>(*place_);
}
std::span<std::byte> CallContext::told_room() const noexcept { return shim::told_room(place_->image, astack().limit); }
const shim::Credentials& CallContext::caller() const noexcept { return astack().binding->client(); }
const shim::Principal* CallContext::remote() const noexcept { return astack().binding->principal(); }
std::uint64_t CallContext::binding_id() const noexcept { return astack().binding->id(); }
server::HandleTable& CallContext::handles() const noexcept { return astack().binding->handles(); }
server::CallbackPort& CallContext::callback_port() const noexcept { return astack().binding->callback_port(); }

// A caller's deadline is told by its clock, ours by time stamps: for at most 10 ms of a rate that is known to a
// five-hundredth, for longer times of one that is known to a microsecond or so. Nobody is to hear of an end here that has
// not come there. In ns.
static constexpr std::int64_t kGrace = 50'000;

bool CallContext::abandoned() const noexcept {
  const shim::CallWord now = shim::load_word(*astack().head);
  const bool still_called =
      ((now.bits() ^ word_) &
       (shim::CallWord::kTurnMask | shim::CallWord::kGenerationMask << shim::CallWord::kGenerationShift)) == 0;
  if (!still_called || astack().binding->revoked()) return true;
  if (!shim::CallWord(word_).limited() || limits_.deadline.left() > -kGrace) return false;
  to_do_ |= kToldOver;
  return true;
}

std::optional<std::chrono::nanoseconds> CallContext::remaining() const noexcept {
  if (!shim::CallWord(word_).limited()) return std::nullopt;
  return std::chrono::nanoseconds(std::max<std::int64_t>(limits_.deadline.left(), 0));
}

std::uint64_t CallContext::grant_raw(std::uint32_t tag, std::type_index type, std::shared_ptr<void> object) {
  const std::uint64_t value = handles().grant(tag, type, std::move(object));
  if (value == 0) throw std::length_error("the client or its user has as many handles as it may");
  return value;
}

}  // namespace lrpc
