#include "lrpc/detail/server/call_context.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string_view>

#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/binder/told_text.h"
#include "lrpc/detail/shim/call/gates.h"
#include "served_binding.h"

namespace lrpc {
namespace server {
namespace {

constexpr std::align_val_t kScratchAlignment{64};

std::byte* allocate(std::size_t size) { return static_cast<std::byte*>(::operator new(size, kScratchAlignment)); }

/// Whether a procedure may return this code for its own call. Only the runtime may return the other codes: a procedure
/// that returns one has most often got it from a call that it made itself, and "nothing was called" would be false for
/// its own caller.
bool sayable(const CallContext& context, Errc code) noexcept {
  for (const Errc one : {Errc::call_failed, Errc::argument_out_of_range, Errc::argument_too_long, Errc::bad_handle,
                         Errc::limit_reached, Errc::not_permitted, Errc::not_supported, Errc::invalid_argument}) {
    if (code == one) return true;
  }
  // The calls that the procedure makes inherit its deadline: if it has passed for them, it has passed for the caller.
  return code == Errc::call_aborted && context.remaining() == std::chrono::nanoseconds(0);
}

}  // namespace

void Scratch::Free::operator()(std::byte* memory) const noexcept { ::operator delete(memory, kScratchAlignment); }

std::span<std::byte> Scratch::take(std::size_t size) {
  const std::size_t needed = (size + 63) / 64 * 64;
  if (used_ == 0 && needed > kept_size_ && needed <= kKeep) {  // nobody uses the kept chunk yet: let it grow
    const std::size_t grown = std::min(kKeep, std::max(needed, kept_size_ * 2));
    kept_.reset(allocate(grown));
    kept_size_ = grown;
  }
  if (used_ + needed <= kept_size_) return {kept_.get() + std::exchange(used_, used_ + needed), size};
  std::unique_ptr<std::byte, Free> chunk(allocate(needed));  // owned here until the vector has room for it
  chunks_.push_back(std::move(chunk));
  return {chunks_.back().get(), size};
}

void Scratch::reset() noexcept {
  used_ = 0;
  chunks_.clear();
}

std::uint16_t failed(const CallContext& context, Errc code, const std::string* text) noexcept {
  const bool as_it_is = sayable(context, code);
  const std::uint16_t status = failed(as_it_is ? code : Errc::call_failed);
  const auto room = detail::StubAccess::told_room(context);
  bool told = text != nullptr && shim::put_told(room, *text);
  if (!told && !as_it_is) {
    std::array<char, shim::kMostTold + 1> words{};
    const std::string_view whole = describe(code);
    const std::string_view of = whole.substr(0, whole.find(';'));  // small A-stacks have little room
    (void)std::snprintf(words.data(), words.size(), "the procedure returned: %.*s", static_cast<int>(of.size()),
                        of.data());
    told = shim::put_told(room, words.data());
  }
  return static_cast<std::uint16_t>(status | (told ? shim::call_status::kTold : 0));
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

// In ns. The caller measures its deadline by its clock, this side by time stamps, whose rate is known to a
// five-hundredth for up to 10 ms, and to about a microsecond for longer times. A deadline that passed here this long
// ago has passed there, too.
static constexpr std::int64_t kGrace = 50'000;

bool CallContext::abandoned() const noexcept {
  const shim::CallWord now = shim::load_word(*astack().head);
  if (!now.same_turn(word_) || astack().binding->revoked()) return true;
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
  if (value == 0) {
    throw std::length_error(
        "the client, its user or its host has as many handles as it may (max_handles_per_user; 65536 in one binding)");
  }
  return value;
}

}  // namespace lrpc
