#include "lrpc/detail/shim/system/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {
namespace {

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode) & 07777U);
  return text.data();
}

/// The checks that sudo(8) makes on its own files.
Status check(const struct stat& found, const std::string& path, const OwnFile& file) {
  if (!S_ISREG(found.st_mode)) return Error{Errc::invalid_argument, path + " is not a regular file"};
  if (found.st_uid != 0 && found.st_uid != file.user) {
    return Error{Errc::not_permitted, path + " belongs to user " + std::to_string(found.st_uid) +
                                          ", who could change it: chown it to root or to user " +
                                          std::to_string(file.user)};
  }
  const auto open_to_others = [&](const char* how, const char* repair) {
    return Error{Errc::not_permitted, path + " can be " + how + " by others than its owner (mode " +
                                          octal(found.st_mode) + "); do: chmod " + repair + " " + path};
  };
  if (file.secret && (found.st_mode & (S_IRWXG | S_IRWXO)) != 0) return open_to_others("read", "600");
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return open_to_others("written", "go-w");
  return {};
}

}  // namespace

Status read_own_file(const std::string& path, const OwnFile& file, std::string& text) {
  // O_NONBLOCK: a FIFO is to be refused, not waited for.
  const UniqueFd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat found {};
  if (!opened || ::fstat(opened.get(), &found) != 0) return system_error("cannot read " + path, errno);
  if (auto good = check(found, path, file); !good) return good;
  text.assign(file.most + 1, '\0');  // once, so that no partial copies of a secret stay in the heap
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(opened.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read " + path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > file.most)
    return Error{Errc::invalid_argument, path + " is longer than " + std::to_string(file.most) + " bytes"};
  text.resize(size);
  return {};
}

}  // namespace lrpc::shim
