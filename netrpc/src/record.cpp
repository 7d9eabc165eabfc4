#include "record.h"

#include <algorithm>
#include <cstring>

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc {

RecordReader::State RecordReader::feed(std::span<const std::byte>& bytes) {
  if (whole_) {
    whole_ = false;
    record_.clear();
  }
  for (;;) {
    if (marked_ < kRecordMark) {
      const std::size_t taken = std::min(kRecordMark - marked_, bytes.size());
      if (taken != 0) std::memcpy(mark_ + marked_, bytes.data(), taken);
      marked_ += taken;
      bytes = bytes.subspan(taken);
      if (marked_ < kRecordMark) return State::more;
      const auto mark = WireReader(mark_).get<std::uint32_t>();
      last_ = mark >> 31 != 0;
      left_ = mark & 0x7fff'ffff;
      // Otherwise a record of empty fragments could go on for ever.
      wrong_ = (left_ == 0 && !last_) || left_ > longest_ - record_.size();
    }
    if (wrong_) return State::wrong;
    const std::size_t taken = std::min(left_, bytes.size());
    record_.insert(record_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    left_ -= taken;
    if (left_ != 0) return State::more;
    marked_ = 0;
    if (!last_) continue;
    whole_ = true;
    return State::record;
  }
}

}  // namespace lrpc::netrpc
