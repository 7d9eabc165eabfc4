#include "netrpc/composite/bag.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace lrpc::netrpc::composite {

void Item::unreferenced() noexcept { bag_.items_.destroy(*this); }

// ---- attributes ----

std::size_t AttributeTable::place(Declared declared, std::size_t alignment, bool integer, std::string& why_not) {
  const auto same = std::ranges::find_if(all_, [&](const Declared& one) {
    return one.name == declared.name &&
           (one.owner == declared.owner || (one.seen == Visibility::of_all && declared.seen == Visibility::of_all));
  });
  declared.offset = (used_ + alignment - 1) / alignment * alignment;
  if (same != all_.end()) {
    why_not = fmt::format("attribute '{}' is {}'s already", declared.name, same->owner);
  } else if (declared.travels == InHeader::yes && !integer) {
    why_not = fmt::format("attribute '{}' is no integer, and cannot travel in the header", declared.name);
  } else if (declared.offset + declared.size > Item::kAttributeBytes) {
    why_not = fmt::format("attributes of more than {} bytes", Item::kAttributeBytes);
  }
  if (!why_not.empty()) return 0;
  used_ = declared.offset + declared.size;
  all_.push_back(std::move(declared));
  return all_.back().offset;
}

std::size_t AttributeTable::find(const std::string& name, bool is_public, std::type_index type,
                                 std::string& why_not) const {
  const auto found = std::ranges::find_if(all_, [&](const Declared& one) {
    return is_public ? one.name == name && one.seen == Visibility::of_all : one.owner + "." + one.name == name;
  });
  if (found != all_.end() && found->type == type) return found->offset;
  why_not = found == all_.end() ? fmt::format("nobody has {} attribute '{}'", is_public ? "a public" : "an", name)
                                : fmt::format("attribute '{}.{}' has another type", found->owner, found->name);
  return 0;
}

HeaderMapping AttributeTable::mapping_of_integers() const {
  std::vector<const Declared*> travel;
  for (const Declared& one : all_)
    if (one.travels == InHeader::yes) travel.push_back(&one);
  std::ranges::sort(travel, [](const Declared* a, const Declared* b) {
    return std::tie(a->owner, a->name) < std::tie(b->owner, b->name);
  });
  HeaderMapping mapping;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // offset and size of each that travels
  std::uint16_t tag = 0;
  for (const Declared* one : travel) {
    places.emplace_back(one->offset, one->size);
    mapping.size += one->size;
    for (const char c : fmt::format("{}.{}:{} ", one->owner, one->name, one->size))
      tag = static_cast<std::uint16_t>(tag * 31U + static_cast<unsigned char>(c));
  }
  static_assert(std::endian::native == std::endian::little);
  if (travel.empty())
    return {.size = 0, .write = [](const Item&, std::byte*) {}, .read = [](Item&, const std::byte*) { return true; }};
  mapping.size += sizeof tag;
  mapping.write = [places, tag](const Item& item, std::byte* to) {
    *to++ = std::byte(tag >> 8);
    *to++ = std::byte(tag & 0xff);
    for (const auto& [offset, size] : places) {
      const std::byte* const from = item.attributes_.data() + offset;
      to = std::reverse_copy(from, from + size, to);
    }
  };
  mapping.read = [places, tag](Item& item, const std::byte* from) {
    if (from[0] != std::byte(tag >> 8) || from[1] != std::byte(tag & 0xff)) return false;
    from += sizeof tag;
    for (const auto& [offset, size] : places) {
      std::reverse_copy(from, from + size, item.attributes_.data() + offset);
      from += size;
    }
    return true;
  };
  return mapping;
}

std::string AttributeTable::describe(const Item& item) const {
  std::string text;
  for (const Declared& one : all_) {
    text += fmt::format("{}{}.{} =", text.empty() ? "" : ", ", one.owner, one.name);
    if (std::uint64_t value = 0; one.size <= sizeof value) {
      std::memcpy(&value, item.attributes_.data() + one.offset, one.size);
      text += fmt::format(" {}", value);
      continue;
    }
    for (std::size_t i = 0; i < one.size; ++i)
      text += fmt::format(" {:02x}", static_cast<unsigned>(item.attributes_[one.offset + i]));
  }
  return text;
}

// ---- the bag ----

SendBit Bag::add_last_send_bit(std::function<void(const ItemRef&)> asked) {
  if (last_ != 0) return {};
  ask_last_ = std::move(asked);
  const SendBit bit = add_send_bit();
  last_ = bit.mask;
  return bit;
}

ItemRef Bag::copy_of(const ItemRef& item) noexcept {
  Message message = item->message.share();
  if (item->message.allocated() && !message.allocated()) return {};
  ItemRef copy = new_item(item->session(), item->direction, std::move(message));
  if (copy) copy->attributes_ = item->attributes_;
  return copy;
}

void Bag::insert(const ItemRef& item) noexcept {
  if (!item || item->state_ != Item::State::outside) return;
  const ItemRef keep(item.get());  // the caller's reference may be in what a handler releases
  ++keep->references_;             // the bag's
  keep->state_ = Item::State::inserted;
  keep->next_ = first_;
  if (first_ != nullptr) first_->previous_ = keep.get();
  first_ = keep.get();
  ++count_;
  events_.raise(inserted_, Raise::synchronous, keep);
  if (keep->state_ == Item::State::inserted && !has_room_(keep)) return erase(keep, Errc::limit_reached);
  keep->missing_ &= ~kInsertion;
  leave_if_ready(keep);
}

void Bag::set_send_bit(SendBit bit, const ItemRef& item) noexcept {
  if (!item) return;
  const ItemRef keep(item.get());  // the caller's reference may be in what a handler releases
  keep->missing_ &= ~bit.mask;
  leave_if_ready(keep);
}

void Bag::leave_if_ready(const ItemRef& item) noexcept {
  if (item->missing_ == last_ && last_ != 0 && item->state_ == Item::State::inserted) return ask_last_(item);
  if (item->missing_ != 0 || item->state_ != Item::State::inserted) return;
  item->state_ = Item::State::ready;
  events_.raise(ready_, Raise::synchronous, item);
  if (item->state_ != Item::State::ready) return;
  item->state_ = Item::State::leaving;
  leave_(item, item->outcome_);
  if (item->state_ != Item::State::leaving) return;  // the bag has been emptied meanwhile
  unlink(item, Item::State::gone);
  events_.raise(deleted_, Raise::synchronous, item);
}

void Bag::erase(const ItemRef& item, Errc why) noexcept {
  if (!item || (item->state_ != Item::State::inserted && item->state_ != Item::State::ready)) return;
  const ItemRef keep(item.get());  // the caller's reference may be in what a handler releases
  keep->outcome_ = why;
  unlink(keep, Item::State::erased);
  events_.raise(deleted_, Raise::synchronous, keep);
}

void Bag::empty() noexcept {
  while (first_ != nullptr)
    unlink(ItemRef(first_), first_->state_ == Item::State::leaving ? Item::State::gone : Item::State::erased);
}

void Bag::unlink(const ItemRef& item, Item::State state) noexcept {
  for (Visiting* one = visiting_; one != nullptr; one = one->outer)
    if (one->next == item.get()) one->next = item->next_;
  (item->previous_ != nullptr ? item->previous_->next_ : first_) = item->next_;
  if (item->next_ != nullptr) item->next_->previous_ = item->previous_;
  item->next_ = item->previous_ = nullptr;
  item->state_ = state;
  --count_;
  --item->references_;  // the bag's; the caller has one
}

std::string Bag::describe(const Item& item) {
  return fmt::format("{}, {} bytes, {}, {} bits missing", item.direction == Direction::up ? "up" : "down",
                     item.message.size(),
                     item.in_bag()     ? "in the bag"
                     : item.has_left() ? "gone"
                                       : "not in the bag",
                     std::popcount(item.missing_));
}

}  // namespace lrpc::netrpc::composite
