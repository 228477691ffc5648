# What `make install` lays down: the shared library, the headers, the command, its manual page, a CMake package, a
# pkg-config file and the licence. All of it can be moved as one tree. SPDX-License-Identifier: BSD-3-Clause
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/halftone)
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pkgconfig /${pkgconfig_folder} /)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig "${prefix_from_pkgconfig}")

configure_package_config_file(cmake/halftoneConfig.cmake.in halftoneConfig.cmake INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(halftoneConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/halftone.pc.in halftone.pc @ONLY)

install(TARGETS halftone EXPORT halftone_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET halftone_cli)
  install(TARGETS halftone_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/halftone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(EXPORT halftone_targets NAMESPACE halftone:: FILE halftoneTargets.cmake DESTINATION ${package_folder})
install(FILES ${CMAKE_BINARY_DIR}/halftoneConfig.cmake ${CMAKE_BINARY_DIR}/halftoneConfigVersion.cmake DESTINATION ${package_folder})
install(FILES ${CMAKE_BINARY_DIR}/halftone.pc DESTINATION ${pkgconfig_folder})
if(EXISTS ${PROJECT_SOURCE_DIR}/docs/halftone.1) # written by the command: halftone help --man
  install(FILES docs/halftone.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
